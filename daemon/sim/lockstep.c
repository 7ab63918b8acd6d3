// Lock-step: sim time stands still until a command comes, then moves on by one control period.
// The same command sequence therefore gives the same run on any machine.
//
// Subscribers of PUB/SUB join late and miss what was sent before, so what was published for the
// present moment is sent again every 50 ms, with the same stamps, until a command arrives.
#include "daemon/sim/run.h"

#include <math.h>

#include <zmq.h>

#define REPEAT_MS 50

struct moment {
    int64_t epoch_ns; // wall clock at sim time 0: stamps advance with sim time
    double frame_s;   // when the next picture is due
    unsigned mute;
    bool framed; // a picture belongs to this moment
};

static void publish(struct run *r, struct moment *m)
{
    double t = r->plant.scene.d->time;
    int64_t wall_ns = m->epoch_ns + (int64_t)llround(t * 1e9);

    m->mute = options_muted(r->o, t);
    m->framed = t + 1e-9 >= m->frame_s;
    if (m->framed) {
        struct snapshot s;
        plant_snapshot(&r->plant, wall_ns, &s);
        eyes_draw(r->eyes, &s, m->mute);
        m->frame_s += 1 / r->o->camera_hz;
    }
    // After the frames: who has the state of a moment has all of it.
    if (!(m->mute & (1u << SCENE_CAMERAS)))
        wire_send_joints(r->joints, &r->plant.scene, wall_ns);
    wire_send_status(r->status, &r->plant, &r->counts);
}

static void repeat(struct run *r, const struct moment *m)
{
    int64_t wall_ns = m->epoch_ns + (int64_t)llround(r->plant.scene.d->time * 1e9);

    if (m->framed)
        eyes_repeat(r->eyes, m->mute);
    if (!(m->mute & (1u << SCENE_CAMERAS)))
        wire_send_joints(r->joints, &r->plant.scene, wall_ns);
    wire_send_status(r->status, &r->plant, &r->counts);
}

// Waits for one good command. False when a signal came.
static bool wait_command(struct run *r, const struct moment *m)
{
    zmq_pollitem_t item = {r->commands, 0, ZMQ_POLLIN, 0};

    while (!*r->stop) {
        if (wire_receive(r->commands, 1, &r->plant, &r->counts) > 0)
            return true;
        if (zmq_poll(&item, 1, REPEAT_MS) == 0)
            repeat(r, m);
    }
    return false;
}

void run_lockstep(struct run *r)
{
    struct moment m = {.epoch_ns = run_wall_ns()};
    const int steps = (int)lround(1 / r->o->control_hz / SCENE_TIMESTEP_S);

    for (;;) {
        publish(r, &m);
        if (r->plant.done || !wait_command(r, &m))
            break;
        for (int i = 0; i < steps; i++)
            run_step(r);
    }
    // The last moment says `done`; a few times, since nobody acknowledges it.
    for (int i = 0; i < 5 && !*r->stop; i++) {
        zmq_poll(NULL, 0, REPEAT_MS);
        repeat(r, &m);
    }
}
