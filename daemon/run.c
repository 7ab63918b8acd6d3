// Order of start: read, load, lock, plumb, think, loop. Nothing moves at a start: the loop
// publishes the measured pose until somebody arms it, and a restart is always disarmed.
#include "daemon/run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

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
#include "daemon/explain.h"
#include "daemon/fitted.h"
#include "daemon/http.h"
#include "daemon/infer.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/monitor.h"
#include "daemon/rt.h"
#include "daemon/status.h"
#include "daemon/swap.h"
#include "daemon/watch.h"
#include "daemon/watchdog.h"

struct daemon {
    struct config cfg;
    struct fitted *first; // until swap owns it; the parts are built for it
    struct swap *swap;
    struct loop_config loop_cfg;
    struct board board;
    bool board_ready, locked;
    struct camera *camera[POLICY_MAX_CAMERAS];
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
    struct doctor_self self;
    char blas_core[32]; // outlives the policy that told it
    struct control *control;
    struct http *http;
    int signals; // signalfd
    int awake;   // descriptor that keeps the cores from deep sleep, < 0 = none
    struct config_error err;
};

static int fail(struct daemon *d, int status)
{
    log_line(LOG_ERROR, "%s", d->err.text);
    return status;
}

// Blocked before the first thread exists, so that every thread inherits the block and only
// the signalfd sees them.
static int take_signals(struct daemon *d)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP); // ignored: there is nothing to re-read
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a full log file is no reason to let go of the arm
    int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (r == 0)
        d->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (r == 0 && d->signals >= 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot take signals: %s",
             strerror(r ? r : errno));
    return fail(d, EX_OSERR);
}

static int read_files(struct daemon *d, const struct run_options *opt)
{
    if (config_load(&d->cfg, opt->config, &d->err))
        return fail(d, EX_CONFIG);
    if (d->cfg.control.cpu >= 0 && !rt_may_run_on(d->cfg.control.cpu)) {
        snprintf(d->err.text, sizeof d->err.text, RT_NO_CPU, d->cfg.control.cpu);
        return fail(d, EX_CONFIG);
    }
    if (opt->home && isnan(d->cfg.joint[0].home)) {
        snprintf(d->err.text, sizeof d->err.text,
                 "%s: --home needs a rest pose: write `home` for every joint",
                 opt->config);
        return fail(d, EX_CONFIG);
    }
    return 0;
}

static void warn(const char *text)
{
    log_line(LOG_WARN, "%s", text);
}

static int load_policy(struct daemon *d)
{
    d->cpu = d->cfg.control.cpu >= 0 ? d->cfg.control.cpu : rt_choose_cpu();
    const struct policy_options opt = {
        .threads = d->cfg.policy.threads,
        .cpu_mask = rt_mask_without(d->cpu, d->cfg.policy.threads),
        .resize = d->cfg.policy.resize,
        .stats_tag = d->cfg.policy.stats_tag[0] ? d->cfg.policy.stats_tag : NULL,
    };
    char name[CONFIG_NAME];
    fitted_name(d->cfg.policy.directory, name);
    int r = fitted_load(&d->first, &d->cfg, d->cfg.policy.directory, name, &opt, &d->err);
    if (r)
        return fail(d, r == -ENOMEM ? EX_OSERR : EX_CONFIG);
    const struct fitted *f = d->first;
    d->first->generation = d->first->seat.generation = 1;
    if (config_loop(&d->cfg, &f->side, f->info, &d->loop_cfg, &d->err))
        return fail(d, EX_CONFIG);
    log_line(
        LOG_INFO,
        "policy %s: %s, %s; cameras: %d; chunk: %d rows at %g Hz; threads: %d; BLAS %s; "
        "digest %s",
        f->directory, f->info->type, f->info->format, f->info->n_cameras,
        f->info->chunk_size, f->side.rate_hz, f->info->threads, f->info->blas_core,
        f->info->digest);
    (void)check_warnings(&d->cfg, &f->side, f->info, &f->binding, warn);
    return 0;
}

static int lock_memory(struct daemon *d)
{
    d->awake = rt_stay_awake(); // where it is not ours to ask, wake-ups are a bit later
    if (!d->cfg.control.lock_memory)
        return 0;
    int r = rt_lock_memory();
    d->locked = r == 0;
    if (r == 0)
        return 0;
    snprintf(
        d->err.text, sizeof d->err.text,
        "memory cannot be locked (%s): raise RLIMIT_MEMLOCK (LimitMEMLOCK= in the unit, "
        "`ulimit -l`), or set control.lock_memory: false",
        strerror(-r));
    if (d->cfg.control.require_rt)
        return fail(d, EX_OSERR);
    log_line(LOG_WARN, "%s", d->err.text);
    return 0;
}

static int plumb(struct daemon *d)
{
    const struct policy_info *info = d->first->info;
    int r = board_init(&d->board, d->cfg.n_cameras, info->chunk_size, d->cfg.n_joints);
    d->board_ready = r == 0;
    for (int i = 0; i < d->cfg.n_cameras && r == 0; i++)
        r = camera_start(&d->camera[i], d->cfg.camera[i].name, &d->board.camera[i],
                         d->cfg.camera[i].latency_ms);
    for (int i = 0; i < info->n_cameras && r == 0; i++)
        if (d->cfg.policy.resize == POLICY_RESIZE_REFUSE)
            camera_expect(d->camera[d->first->binding.camera_of[i]],
                          info->camera[i].width, info->camera[i].height);
    if (r) {
        snprintf(d->err.text, sizeof d->err.text, "cannot set up the streams: %s",
                 strerror(-r));
        return fail(d, EX_OSERR);
    }
    int priority = d->cfg.control.priority > 1 ? d->cfg.control.priority - 1 : 0;
    if (bus_start(&d->bus, &d->cfg, &d->board, d->camera, priority, &d->err))
        return fail(d, EX_UNAVAILABLE);
    d->publisher =
        bus_publisher(d->bus, d->cfg.status.endpoint, d->cfg.status.bind, &d->err);
    return d->publisher ? 0 : fail(d, EX_UNAVAILABLE);
}

static int start_infer(struct daemon *d)
{
    struct infer_config cfg = {
        .trigger = d->cfg.inference.trigger,
        .max_skew_ns = (ns_t)(d->cfg.inference.max_skew_ms * 1e6),
        .cpu_not = rt_mask_without(d->cpu, d->cfg.policy.threads) ? d->cpu : -1,
    };
    memcpy(cfg.camera_period_ns, d->loop_cfg.camera_period_ns,
           sizeof cfg.camera_period_ns);
    if (infer_start(&d->infer, &cfg, &d->first->seat, d->camera, &d->board, &d->err))
        return fail(d, EX_SOFTWARE);
    return 0;
}

static int start_swap(struct daemon *d)
{
    const struct swap_source src = {
        .cfg = &d->cfg,
        .board = &d->board,
        .infer = d->infer,
        .first = d->first,
        .deadline_ns = d->loop_cfg.budget_ns[BOARD_CHUNK],
    };
    d->first = NULL; // swap's, from here on
    int r = swap_new(&d->swap, &src);
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text,
             "cannot set up the swapping of policies: %s", strerror(-r));
    return fail(d, EX_OSERR);
}

// Evidence is not worth refusing to run for, but it is worth a word.
static int start_blackbox(struct daemon *d)
{
    char directory[CONFIG_PATH];
    const char *joint[ACTD_MAX_JOINTS], *camera[POLICY_MAX_CAMERAS];
    for (int i = 0; i < d->cfg.n_joints; i++)
        joint[i] = d->cfg.joint[i].name;
    for (int i = 0; i < d->cfg.n_cameras; i++)
        camera[i] = d->cfg.camera[i].name;
    const struct blackbox_writer_config cfg = {
        .directory = directory,
        .instance = d->cfg.instance,
        .joint = joint,
        .camera = camera,
        .keep = d->cfg.black_box.keep,
    };
    int r = config_black_box(&d->cfg, directory, sizeof directory);
    if (r == 0)
        r = blackbox_new(&d->blackbox, d->cfg.n_joints, d->cfg.n_cameras,
                         d->cfg.control.rate_hz);
    if (r == 0)
        r = blackbox_writer_start(&d->writer, d->blackbox, &cfg);
    d->loop_cfg.blackbox = d->blackbox;
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot set up the black box: %s",
             strerror(-r));
    return fail(d, EX_OSERR);
}

static int start_monitor(struct daemon *d)
{
    int r = monitor_start(&d->monitor, &d->board, clock_period_ns(d->cfg.control.rate_hz),
                          d->cfg.control.priority);
    atomic_store(&d->alive_ns, clock_now_ns());
    if (r == 0)
        monitor_ping(d->monitor, &d->dog, &d->alive_ns);
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot start the loop's monitor: %s",
             strerror(-r));
    return fail(d, EX_OSERR);
}

static int start_loop(struct daemon *d)
{
    const struct loop_thread_config cfg = {
        .priority = d->cfg.control.priority,
        .cpu = d->cpu,
        .require_rt = d->cfg.control.require_rt,
    };
    int r = loop_new(&d->loop, &d->loop_cfg, &d->board);
    if (r == 0)
        r = loop_thread_start(&d->thread, d->loop, &cfg, d->granted);
    if (r) {
        snprintf(d->err.text, sizeof d->err.text,
                 r == -EPERM ? "real-time scheduling was not granted and "
                               "control.require_rt is set: raise "
                               "RLIMIT_RTPRIO (LimitRTPRIO= in the unit, `ulimit -r`): %s"
                             : "cannot start the loop: %s",
                 strerror(-r));
        return fail(d, EX_OSERR);
    }
    if (strncmp(d->granted, "SCHED_FIFO", 10) != 0 && cfg.priority > 0)
        log_line(LOG_WARN,
                 "the loop runs as %s, NOT real-time: raise RLIMIT_RTPRIO to %d or "
                 "more (LimitRTPRIO= in the unit, `ulimit -r`)",
                 d->granted, cfg.priority);
    log_line(LOG_INFO, "loop: %s, core %d, %g Hz, memory %s", d->granted, d->cpu,
             d->cfg.control.rate_hz, d->locked ? "locked" : "NOT locked");
    return 0;
}

static int start_status(struct daemon *d)
{
    const struct status_source src = {
        .cfg = &d->cfg,
        .swap = d->swap,
        .board = &d->board,
        .bus = d->bus,
        .cameras = d->camera,
        .infer = d->infer,
        .blackbox = d->writer,
        .scheduling = d->granted,
        .memory_locked = d->locked,
        .publisher = d->publisher,
    };
    return status_new(&d->status, &src) ? EX_OSERR : 0;
}

// Who may ask must find all that is asked.
static int start_control(struct daemon *d)
{
    snprintf(d->blas_core, sizeof d->blas_core, "%s",
             swap_hold(d->swap)->info->blas_core);
    swap_release(d->swap);
    d->self = (struct doctor_self){.scheduling = d->granted,
                                   .memory_locked = d->locked,
                                   .loop_cpu = d->cpu,
                                   .blas_core = d->blas_core};
    d->explain = (struct explain_source){.cfg = &d->cfg,
                                         .board = &d->board,
                                         .infer = d->infer,
                                         .bus = d->bus,
                                         .cameras = d->camera};
    const struct control_source src = {.cfg = &d->cfg,
                                       .board = &d->board,
                                       .status = d->status,
                                       .swap = d->swap,
                                       .explain = &d->explain,
                                       .self = &d->self};
    if (control_start(&d->control, &src, &d->err))
        return fail(d, EX_UNAVAILABLE);
    if (d->cfg.metrics.listen[0] &&
        http_start(&d->http, d->cfg.metrics.listen, d->status, &d->err))
        return fail(d, EX_UNAVAILABLE);
    return 0;
}

static int start(struct daemon *d, const struct run_options *opt)
{
    int r = take_signals(d);
    if (r == 0)
        r = read_files(d, opt);
    if (r == 0)
        r = load_policy(d);
    if (r == 0)
        r = lock_memory(d);
    if (r == 0)
        r = plumb(d);
    if (r == 0)
        r = start_infer(d);
    if (r == 0)
        r = start_blackbox(d);
    if (r == 0)
        r = start_loop(d);
    if (r == 0)
        r = start_monitor(d);
    if (r == 0)
        r = start_swap(d); // after the last that is built for the first policy
    if (r == 0)
        r = start_status(d);
    if (r == 0)
        r = start_control(d);
    return r;
}

static void stop(struct daemon *d)
{
    http_stop(d->http);
    control_stop(d->control);
    swap_stop(d->swap); // while the worker can still let go of a candidate
    monitor_stop(d->monitor);
    loop_thread_stop(d->thread);
    if (d->status)
        status_summary(d->status); // looks at the infer thread's counters
    status_free(d->status);
    blackbox_writer_stop(d->writer);
    infer_stop(d->infer);
    swap_free(d->swap);
    fitted_free(d->first);
    if (d->publisher)
        bus_close(d->publisher);
    bus_stop(d->bus);
    loop_free(d->loop);
    blackbox_free(d->blackbox);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        camera_stop(d->camera[i]);
    if (d->board_ready)
        board_free(&d->board);
    if (d->signals >= 0)
        close(d->signals);
    if (d->awake >= 0)
        close(d->awake);
}

static int watch(struct daemon *d, const struct run_options *opt)
{
    const struct watch_source src = {
        .cfg = &d->cfg,
        .limits = &d->loop_cfg.limits,
        .swap = d->swap,
        .board = &d->board,
        .infer = d->infer,
        .status = d->status,
        .bus = d->bus,
        .cameras = d->camera,
        .monitor = d->monitor,
        .dog = &d->dog,
        .alive_ns = &d->alive_ns,
        .blackbox = d->blackbox,
        .signals = d->signals,
        .arm = opt->arm,
        .home = opt->home,
        .seconds = opt->seconds,
    };
    return watch_run(&src);
}

int run(const struct run_options *opt)
{
    struct daemon *d = calloc(1, sizeof *d);
    if (!d)
        return EX_OSERR;
    d->signals = d->awake = -1;
    log_init();
    watchdog_init(&d->dog);
    int r;
    if ((opt->arm || opt->home) && watch_under_manager()) {
        log_line(
            LOG_ERROR,
            "--arm and --home are refused under a service manager: a restart must come "
            "back disarmed");
        r = EX_USAGE;
    } else {
        r = start(d, opt);
    }
    if (r == 0) {
        atomic_store(&d->board.started, true);
        r = watch(d, opt);
    }
    stop(d);
    watchdog_end(&d->dog);
    free(d);
    return r;
}
