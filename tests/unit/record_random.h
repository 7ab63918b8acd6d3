// Random structs for record_codec's tests: all that may be in them, to the odd NaN.
#ifndef TEST_RECORD_RANDOM_H
#define TEST_RECORD_RANDOM_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/codec.h"
#include "policy/pool.h"
#include "tests/unit/record_bytes.h"

#define UNUSED      __attribute__((unused))
#define BYTES(text) ((text)), (sizeof(text) - 1)
#define CAPACITY    (64 * 1024)

static unsigned char out[CAPACITY];
static uint64_t seed = 88172645463325252u;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int below(int n)
{
    return (int)(any() % (unsigned)n);
}

static bool coin(void)
{
    return below(2);
}

static uint32_t any32(void)
{
    return coin() ? (uint32_t)below(3) : (uint32_t)any();
}

static uint64_t any64(void)
{
    return coin() ? (uint64_t)below(3) : any() >> below(64);
}

static ns_t any_ns(void) // up to 2^62, both signs
{
    ns_t t = (ns_t)(any() >> (2 + below(62)));

    return coin() ? t : -t;
}

// Every kind: zeros of both signs, infinities, NaNs of any payload, quiet or not.
static double any_double(void)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN, 5e-324};
    uint64_t bits = coin() ? any() : any() | UINT64_C(0x7ff0000000000000);
    double x;

    if (below(4) == 0)
        return special[below(7)];
    memcpy(&x, &bits, sizeof x);
    return x;
}

UNUSED static void random_inputs(struct tick_inputs *in, int cameras)
{
    in->tick = any64();
    in->now_ns = any_ns();
    in->lateness_ns = any_ns();
    in->last_work_ns = any_ns();
    in->made_ns = any_ns();
    in->reported_ns = any_ns();
    in->joint_sample = any64();
    in->joint_sample_new = coin();
    in->joints_refused_in_a_row = any32();
    in->joints_refused_for = below(LADDER_REASONS);
    in->joints_refused_joint = below(ACTD_MAX_JOINTS + 1) - 1;
    in->joints_refused_value = any_double();
    in->joints_slow = coin();
    for (int i = 0; i < cameras; i++)
        in->camera[i] =
            (struct tick_camera){any_ns(), any_ns(), any32(), any32(), any32(), coin()};
    in->chunks_before = any64();
    in->chunks_taken = (uint32_t)below(4097);
    in->requests = (uint32_t)below(64);
    in->stalls = any32();
    in->policy_failures = any32();
    in->inferring = coin();
    in->starved = below(4);
    in->started = coin();
    in->lost_command = any64();
    in->room = coin();
}

UNUSED static void random_joint(struct tick_joint *j, int targets)
{
    j->measured = any_double();
    j->measured_vel = any_double();
    j->target = targets & 1 ? any_double() : (double)NAN;
    j->target_vel = targets & 2 ? any_double() : (double)NAN;
    j->wanted = any_double();
    j->commanded = any_double();
    j->commanded_vel = any_double();
    j->seam = any_double();
    j->limit = (enum guard_limit)below(GUARD_LIMITS);
}

UNUSED static void random_tick(struct tick_record *r)
{
    int targets = below(4);

    memset(r, 0, sizeof *r);
    r->joints = below(ACTD_MAX_JOINTS + 1);
    r->cameras = below(POLICY_MAX_CAMERAS + 1);
    random_inputs(&r->in, r->cameras);
    r->mode = (enum ladder_state)below(LADDER_STATES);
    r->reason = (enum ladder_reason)below(LADDER_REASONS);
    r->culprit = below(ACTD_MAX_JOINTS + 1) - 1;
    r->culprit_value = any_double();
    r->conditions = any64();
    r->latched = any64();
    r->active = any64();
    r->degraded = coin();
    r->wants_inference = coin();
    r->published = coin();
    r->gate = (int)any32();
    r->sequence = any64();
    r->target_rc = (int)any32();
    r->chunk_id = any64();
    r->generation = any32();
    r->chunk_row = any_double();
    r->chunk_remaining = any_double();
    r->chunks_blended = (int)(any32() >> 1);
    r->margin_ns = any_ns();
    for (int i = 0; i < r->joints; i++)
        random_joint(&r->joint[i], targets);
}

UNUSED static void random_input(struct tape_input *in)
{
    memset(in, 0, sizeof *in);
    in->number = 1 + (any64() >> 1);
    in->at_ns = any_ns();
    in->kind = (enum tape_input_kind)below(4);
    in->stream = below(POLICY_MAX_CAMERAS + 1);
    in->armed = coin();
    in->outcome = (enum tape_outcome)below(5);
    in->verdict = below(CODEC_VERDICTS);
    in->form = (enum tape_form)below(4);
    in->stamp_wall_ns = (int64_t)any();
    in->joint_sample = any64();
    in->capture_ns = any_ns();
    in->by_ns = (int64_t)any();
    in->bytes = any64();
    in->kept = coin();
}

UNUSED static void random_chunk(struct tape_chunk *c, float *row)
{
    memset(c, 0, sizeof *c);
    c->number = 1 + (any64() >> 1);
    c->id = any64();
    c->generation = any32();
    c->rows = 1 + below(100);
    c->joints = 1 + below(ACTD_MAX_JOINTS);
    c->anchor_ns = any_ns();
    c->oldest_ns = any_ns();
    c->ready_ns = any_ns();
    c->step_ns = 1 + (ns_t)(any() >> (2 + below(61)));
    c->began_ns = any_ns();
    c->joint_sample = any64();
    for (int i = below(POLICY_MAX_CAMERAS + 1); i-- > 0;) {
        c->frame_ns[i] = coin() ? any_ns() : 0;
        c->capture_ns[i] = coin() ? any_ns() : 0;
    }
    for (int i = 0; i < c->rows * c->joints; i++) {
        uint32_t bits = (uint32_t)any();

        memcpy(&row[i], &bits, sizeof bits);
    }
}

UNUSED static void random_word(char *text, size_t capacity)
{
    size_t n = (size_t)below((int)capacity);

    memset(text, 0, capacity);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(1 + below(127));
}

UNUSED static void random_seat(struct tape_seat *s)
{
    memset(s, 0, sizeof *s);
    s->generation = any32();
    s->threads = below(POOL_MAX_THREADS + 1);
    s->since_ns = any_ns();
    random_word(s->name, sizeof s->name);
    random_word(s->directory, sizeof s->directory);
    random_word(s->digest, sizeof s->digest);
    random_word(s->config_sha256, sizeof s->config_sha256);
    random_word(s->weights_sha256, sizeof s->weights_sha256);
    random_word(s->statistics_sha256, sizeof s->statistics_sha256);
}

#endif
