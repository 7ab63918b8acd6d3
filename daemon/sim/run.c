#include "daemon/sim/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

int64_t run_wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int open_sockets(struct run *r, char *err, size_t err_len)
{
    const struct options *o = r->o;

    r->joints = wire_open(r->zmq, ZMQ_PUB, WIRE_SMALL_HWM, o->role, o->runtime,
                          "joints.state", err, err_len);
    if (r->joints)
        r->commands = wire_open(r->zmq, ZMQ_SUB, WIRE_SMALL_HWM, o->role, o->runtime,
                                "joints.command", err, err_len);
    if (r->commands)
        r->status = wire_open(r->zmq, ZMQ_PUB, WIRE_SMALL_HWM, WIRE_BIND, o->runtime,
                              "sim.status", err, err_len);
    return r->status ? 0 : -EIO;
}

static void close_sockets(struct run *r)
{
    wire_close(r->joints);
    wire_close(r->commands);
    if (r->status) {
        char path[WIRE_PATH_MAX + 16];

        wire_close(r->status);
        snprintf(path, sizeof path, "%s/sim.status", r->o->runtime);
        unlink(path); // libzmq leaves it
    }
    if (r->zmq)
        zmq_ctx_term(r->zmq);
}

int run_open(struct run *r, const struct options *o, const volatile sig_atomic_t *stop,
             char *err, size_t err_len)
{
    memset(r, 0, sizeof *r);
    r->o = o;
    r->stop = stop;
    r->zmq = zmq_ctx_new();
    int rc = wire_make_runtime(o->runtime);
    if (rc < 0) {
        snprintf(err, err_len, "%s: %s: give a writable directory with --runtime",
                 o->runtime, strerror(-rc));
        goto fail;
    }
    rc = plant_open(&r->plant, o->seed, o->episodes, o->control_hz, err, err_len);
    if (rc < 0)
        goto fail;
    rc = eyes_open(&r->eyes, o, r->zmq, !o->lockstep, err, err_len);
    if (rc == 0)
        rc = open_sockets(r, err, err_len);
    if (rc == 0)
        return 0;
    eyes_close(r->eyes);
    plant_close(&r->plant);
fail:
    close_sockets(r);
    return rc;
}

int run_close(struct run *r, char *err, size_t err_len)
{
    int rc = 0;

    eyes_close(r->eyes); // before the sheet: it opens cameras of its own
    close_sockets(r);
    if (r->o->sheet && r->story.n > 0) {
        rc = sheet_draw(&r->plant.scene, &r->story, r->o->sheet, r->o->seed);
        if (rc < 0)
            snprintf(err, err_len, "cannot write %s (%s): check directory and room",
                     r->o->sheet, strerror(-rc));
    }
    plant_close(&r->plant);
    return rc;
}

void run_step(struct run *r)
{
    struct snapshot s;
    unsigned before = r->plant.task.episode;

    if (before == 0 && r->plant.begun &&
        sheet_story_due(&r->story, r->plant.scene.d->time)) {
        plant_snapshot(&r->plant, 0, &s);
        sheet_story_add(&r->story, &s);
    }
    double distance = r->plant.task.distance_m;
    plant_step(&r->plant);
    if (before == 0 && r->plant.task.episode == 1) {
        r->story.succeeded = r->plant.task.succeeded == 1;
        r->story.distance_m = distance;
    }
}
