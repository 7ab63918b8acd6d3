// Real time. The main thread does physics, joint states and commands, and sleeps to absolute
// deadlines one physics step apart; pictures are made in the thread of eyes.c.
#include "daemon/sim/run.h"

#include <errno.h>
#include <time.h>

// Further behind than this, lost time is let go instead of caught up in a burst.
#define BEHIND_MAX_NS 50000000
#define STATUS_HZ     10
#define LAST_WORDS_S  0.5 // `done` is published so long, for readers that poll

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t when_ns)
{
    struct timespec t = {when_ns / 1000000000, when_ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t,
                    NULL); // a signal may cut it short
}

// A stream's own clock in sim time: true once per period, without drift.
static bool due(double *next_s, double time_s, double hz)
{
    if (time_s + 1e-9 < *next_s)
        return false;
    *next_s += 1 / hz;
    if (*next_s < time_s)
        *next_s = time_s + 1 / hz;
    return true;
}

struct schedule {
    double joints_s, camera_s, status_s;
};

static void publish(struct run *r, struct schedule *next)
{
    double t = r->plant.scene.d->time;
    unsigned mute = options_muted(r->o, t);

    if (due(&next->joints_s, t, r->o->joint_hz) && !(mute & (1u << SCENE_CAMERAS)))
        wire_send_joints(r->joints, &r->plant.scene, run_wall_ns());
    if (due(&next->camera_s, t, r->o->camera_hz)) {
        struct snapshot s;
        plant_snapshot(&r->plant, run_wall_ns(), &s);
        eyes_look(r->eyes, &s, mute);
    }
    if (due(&next->status_s, t, STATUS_HZ))
        wire_send_status(r->status, &r->plant, &r->counts);
}

void run_live(struct run *r)
{
    struct schedule next = {0};
    const int64_t step_ns = (int64_t)(SCENE_TIMESTEP_S / r->o->speed * 1e9);
    int64_t deadline_ns = now_ns();
    double over_s = -1;

    while (!*r->stop) {
        wire_receive(r->commands, WIRE_SMALL_HWM, &r->plant, &r->counts);
        run_step(r);
        publish(r, &next);
        if (r->plant.done && over_s < 0) {
            over_s = r->plant.scene.d->time;
            wire_send_status(r->status, &r->plant, &r->counts);
        }
        if (over_s >= 0 && r->plant.scene.d->time - over_s > LAST_WORDS_S)
            break;
        deadline_ns += step_ns;
        if (now_ns() - deadline_ns > BEHIND_MAX_NS) {
            deadline_ns = now_ns();
            r->resyncs++;
        }
        sleep_until(deadline_ns);
    }
}
