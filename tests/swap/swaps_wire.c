// An eye on joints.command that believes nothing but the limits in the configuration: a position
// within its bounds, the way from command to command within velocity times the period, the
// change of that way within acceleration times the period squared. It counts ticks by the
// commands' own numbers, and late wake-ups by what they say of themselves.
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "actd/v1/joint_command.pb-c.h"
#include "tests/swap/swaps.h"

#define MESSAGE (64 * 1024)
#define RECENT  2048
#define LAST    6
#define TELL    3
#define ROUNDED 1e-9 // rad: of sums of doubles

const char *const swaps_joint[SWAPS_JOINTS] = {
    "shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"};
const double swaps_min[SWAPS_JOINTS] = {-1.9, -1.7, -1.6, -1.6, -2.7, 0.0};
const double swaps_max[SWAPS_JOINTS] = {1.9, 1.7, 1.6, 1.9, 2.7, 1.0};

struct seen { // a command, for whoever wants to know what went wrong
    uint64_t sequence, tick, chunk;
    double row, pos[SWAPS_JOINTS], vel[SWAPS_JOINTS], wanted[SWAPS_JOINTS];
    int mode, limit[SWAPS_JOINTS], blended;
    double late_ms;
};

struct swaps_eye {
    void *context, *socket;
    pthread_t thread;
    _Atomic bool stop;
    pthread_mutex_t lock; // of seen
    struct swaps_seen seen;
    uint64_t sequence, tick; // of the newest
    double pos[SWAPS_JOINTS], way[SWAPS_JOINTS];
    struct seen last[LAST]; // commands, the oldest at n_last % LAST
    unsigned n_last;
    int broken_joint, to_tell; // so many more commands go to stderr
    bool blind; // a command was lost: which way the last one went is not known
    uint64_t recent[RECENT]; // ticks with a command, tick % RECENT
    uint8_t message[MESSAGE];
};

static void tell_one(const struct seen *s, int joint)
{
    fprintf(
        stderr,
        "  command %llu, tick %llu, mode %d: at %.9f, %.6f rad/s, wanted %.9f, limit %d; "
        "chunk %llu row %.3f of %d; late by %.2f ms\n",
        (unsigned long long)s->sequence, (unsigned long long)s->tick, s->mode,
        s->pos[joint], s->vel[joint], s->wanted[joint], s->limit[joint],
        (unsigned long long)s->chunk, s->row, s->blended, s->late_ms);
}

static void remember(struct swaps_eye *e, const Actd__V1__JointCommand *m)
{
    struct seen *s = &e->last[e->n_last++ % LAST];

    *s = (struct seen){.sequence = m->sequence,
                       .tick = m->tick,
                       .chunk = m->chunk_id,
                       .row = m->chunk_row,
                       .blended = (int)m->chunks_blended,
                       .mode = (int)m->mode,
                       .late_ms = 1e-6 * (double)m->wakeup_lateness_ns};
    for (int j = 0; j < SWAPS_JOINTS; j++) {
        s->pos[j] = m->joints[j]->position;
        s->vel[j] = m->joints[j]->velocity;
        s->wanted[j] = m->joints[j]->wanted;
        s->limit[j] = (int)m->joints[j]->limit;
    }
    if (e->to_tell > 0 && e->to_tell-- > 0)
        tell_one(s, e->broken_joint);
}

static void broken(struct swaps_eye *e, const Actd__V1__JointCommand *m, int j,
                   const char *what, double by)
{
    if (e->seen.broken == 0) {
        fprintf(stderr, "%s, %s %.9g; joint %d before and after:\n", swaps_joint[j], what,
                by, j);
        for (unsigned i = e->n_last > LAST ? e->n_last - LAST : 0; i < e->n_last; i++)
            tell_one(&e->last[i % LAST], j);
        e->broken_joint = j;
        e->to_tell = TELL;
    }
    if (e->seen.broken++ == 0)
        snprintf(e->seen.first_broken, sizeof e->seen.first_broken,
                 "tick %llu, %s: %s %.9g (mode %d, chunk %llu)",
                 (unsigned long long)m->tick, swaps_joint[j], what, by, (int)m->mode,
                 (unsigned long long)m->chunk_id);
}

// Steps of a lost command count for it: `n` periods lie between the two.
static void check_joint(struct swaps_eye *e, const Actd__V1__JointCommand *m, int j,
                        double n)
{
    const double dt = 1 / SWAPS_HZ, p = m->joints[j]->position;
    double way = p - e->pos[j], v = fabs(way) / dt / SWAPS_VELOCITY;
    double a = fabs(way - e->way[j]) / (dt * dt) / SWAPS_ACCELERATION;

    if (!isfinite(p) || p < swaps_min[j] - ROUNDED || p > swaps_max[j] + ROUNDED)
        broken(e, m, j, "position", p);
    if (fabs(way) > n * SWAPS_VELOCITY * dt + ROUNDED)
        broken(e, m, j, "times the velocity limit", v / n);
    if (n <= 1 && !e->blind &&
        fabs(way - e->way[j]) > SWAPS_ACCELERATION * dt * dt + ROUNDED)
        broken(e, m, j, "times the acceleration limit", a);
    if (n <= 1 && !e->blind) {
        e->seen.worst_v = fmax(e->seen.worst_v, v);
        e->seen.worst_a = fmax(e->seen.worst_a, a);
    }
    e->seen.moved_rad += fabs(way);
    e->way[j] = way;
    e->pos[j] = p;
}

static void count(struct swaps_eye *e, const Actd__V1__JointCommand *m)
{
    struct swaps_seen *s = &e->seen;
    uint64_t gap = m->tick - e->tick;

    s->ticks += gap;
    s->skipped += gap - (m->sequence - e->sequence);
    s->gaps += gap > m->sequence - e->sequence;
    s->lost += m->sequence - e->sequence - 1;
    s->late_ms += m->wakeup_lateness_ns > 1000000;
    s->late_period += (double)m->wakeup_lateness_ns > 1e9 / SWAPS_HZ;
}

// A motion starts where the arm is measured, wherever it was commanded to be held: from rest, at
// the place that the first command's own velocity leads back to.
static bool starts(const struct swaps_eye *e, const Actd__V1__JointCommand *m)
{
    return e->seen.mode <= ACTD__V1__MODE__MODE_READY &&
           m->mode > ACTD__V1__MODE__MODE_READY;
}

static void take(struct swaps_eye *e, const Actd__V1__JointCommand *m)
{
    pthread_mutex_lock(&e->lock);
    if (e->sequence == 0 || m->sequence <= e->sequence || m->tick <= e->tick) {
        for (int j = 0; j < SWAPS_JOINTS; j++) { // the first, or of another daemon
            e->pos[j] = m->joints[j]->position;
            e->way[j] = 0;
        }
        e->blind = true;
    } else {
        for (int j = 0; j < SWAPS_JOINTS && starts(e, m); j++) {
            e->pos[j] = m->joints[j]->position - m->joints[j]->velocity / SWAPS_HZ;
            e->way[j] = 0;
        }
        for (int j = 0; j < SWAPS_JOINTS; j++)
            check_joint(e, m, j, (double)(m->sequence - e->sequence));
        count(e, m);
        e->blind = m->sequence - e->sequence > 1;
    }
    remember(e, m);
    e->recent[m->tick % RECENT] = m->tick;
    e->sequence = m->sequence;
    e->tick = m->tick;
    e->seen.commands++;
    e->seen.mode = (int)m->mode;
    e->seen.reason = (int)m->reason;
    e->seen.in_mode[m->mode < 16 ? m->mode : 0]++;
    pthread_mutex_unlock(&e->lock);
}

static void *watch(void *arg)
{
    struct swaps_eye *e = arg;

    while (!e->stop) {
        int n = zmq_recv(e->socket, e->message, sizeof e->message, 0);
        Actd__V1__JointCommand *m =
            n <= 0 || n > MESSAGE
                ? NULL
                : actd__v1__joint_command__unpack(NULL, (size_t)n, e->message);

        if (m && m->n_joints == SWAPS_JOINTS)
            take(e, m);
        if (m)
            actd__v1__joint_command__free_unpacked(m, NULL);
    }
    return NULL;
}

int swaps_eye_open(struct swaps_eye **out, const char *runtime)
{
    struct swaps_eye *e = calloc(1, sizeof *e);
    const int ms = 50, none = 0;
    char endpoint[PATH_MAX];

    *out = e;
    if (!e)
        return -ENOMEM;
    pthread_mutex_init(&e->lock, NULL);
    e->context = zmq_ctx_new();
    e->socket = zmq_socket(e->context, ZMQ_SUB);
    zmq_setsockopt(e->socket, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(e->socket, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(e->socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(e->socket, ZMQ_RCVTIMEO, &ms, sizeof ms);
    snprintf(endpoint, sizeof endpoint, "ipc://%.4000s/joints.command", runtime);
    if (zmq_connect(e->socket, endpoint) != 0)
        return -errno;
    return -pthread_create(&e->thread, NULL, watch, e);
}

void swaps_eye_close(struct swaps_eye *e)
{
    if (!e)
        return;
    e->stop = true;
    pthread_join(e->thread, NULL);
    zmq_close(e->socket);
    zmq_ctx_term(e->context);
    free(e);
}

void swaps_eye_look(struct swaps_eye *e, struct swaps_seen *out)
{
    pthread_mutex_lock(&e->lock);
    *out = e->seen;
    pthread_mutex_unlock(&e->lock);
}

int swaps_eye_missed(struct swaps_eye *e, uint64_t tick)
{
    int n = 0;

    pthread_mutex_lock(&e->lock);
    for (uint64_t t = tick - 1; t <= tick + 2 && t <= e->tick; t++)
        n += e->recent[t % RECENT] != t;
    pthread_mutex_unlock(&e->lock);
    return n;
}

struct swaps_seen swaps_between(const struct swaps_seen *from,
                                const struct swaps_seen *to)
{
    struct swaps_seen d = *to;

    d.commands -= from->commands;
    d.lost -= from->lost;
    d.ticks -= from->ticks;
    d.skipped -= from->skipped;
    d.gaps -= from->gaps;
    d.late_ms -= from->late_ms;
    d.late_period -= from->late_period;
    d.moved_rad -= from->moved_rad;
    for (int i = 0; i < 16; i++)
        d.in_mode[i] -= from->in_mode[i];
    return d;
}
