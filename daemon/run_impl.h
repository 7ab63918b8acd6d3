// What the parts of run share. Nobody else includes this.
//
//   run.c        the order of start and stop; files, policy, memory, sockets
//   run_parts.c  the threads, one after the other
//   run_record.c tape and recorder
#ifndef ACTD_RUN_IMPL_H
#define ACTD_RUN_IMPL_H

#include "daemon/blackbox.h"
#include "daemon/board.h"
#include "daemon/bus.h"
#include "daemon/camera.h"
#include "daemon/check.h"
#include "daemon/config.h"
#include "daemon/config_black_box.h"
#include "daemon/config_loop.h"
#include "daemon/control.h"
#include "daemon/doctor.h"
#include "daemon/endpoint.h"
#include "daemon/explain.h"
#include "daemon/explain_latch.h"
#include "daemon/fitted.h"
#include "daemon/http.h"
#include "daemon/infer.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/monitor.h"
#include "daemon/process.h"
#include "daemon/recorder.h"
#include "daemon/rt.h"
#include "daemon/status.h"
#include "daemon/swap.h"
#include "daemon/tape.h"
#include "daemon/watch.h"
#include "daemon/watchdog.h"

struct daemon {
    struct config cfg;
    char *config_text;    // of its file
    struct fitted *first; // until swap owns it; the parts are built for it
    struct swap *swap;
    struct loop_config loop_cfg;
    struct board board;
    bool board_ready, locked;
    struct tape *tape; // NULL = nothing can be recorded; so the recorder
    struct recorder *recorder;
    struct camera *camera[POLICY_MAX_CAMERAS];
    int lock_fd; // of the runtime directory until the bus has it, < 0 = none
    struct bus *bus;
    void *publisher;
    struct infer *infer;
    struct blackbox *blackbox;
    struct blackbox_writer *writer;
    struct loop *loop;
    struct loop_thread *thread;
    struct monitor *monitor;
    struct watchdog dog;
    _Atomic int64_t alive_ns; // when the watching thread last came by
    char granted[64];
    int cpu; // the loop's core, -1 = any
    struct status *status;
    struct explain_source explain;
    struct explain_latch latch;
    struct doctor_self self;
    char blas_core[32]; // outlives the policy that told it
    struct control *control;
    struct http *http;
    int signals; // signalfd
    int awake;   // descriptor that keeps the cores from deep sleep, < 0 = none
    struct config_error err;
};

// plain. Says d->err and returns status.
int run_fail(struct daemon *d, int status);

// plain, run_parts.c; in this order. 0, or an exit status with the error said.
int run_start_infer(struct daemon *d);
int run_start_swap(struct daemon *d);
int run_start_blackbox(struct daemon *d);
int run_start_monitor(struct daemon *d);
int run_start_loop(struct daemon *d);
int run_start_status(struct daemon *d);
int run_start_control(struct daemon *d);

// plain, run_record.c. After the board and the cameras, before the bus: nothing comes in unseen. A
// daemon that can not record says so and runs.
void run_start_record(struct daemon *d);
// A policy took the seat. arg: struct daemon; any plain thread.
void run_seated(void *arg, const struct fitted *f);
// When all who write the tape have ended.
void run_stop_record(struct daemon *d);

#endif
