// Swaps with all the threads that there are: the worker, the swap's own, a loop, streams,
// and plain threads that hold the policy, look and ask, while others call it off. What is
// freed is overwritten first (swap_rig.h), so who looks at it too late is seen;
// ThreadSanitizer sees the rest.
#include "tests/unit/swap_rig.h"

#include <pthread.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/swap_impl.h"

#define FOR_NS (3 * NS_PER_S)

void log_line(enum log_level level, const char *format, ...)
{
    (void)level;
    (void)format;
}

struct crowd {
    struct rig *r;
    pthread_t thread[5];
    _Atomic bool stop;
    _Atomic uint64_t chunks, changes, looks;
    _Atomic bool wrong;
};

static void nap(ns_t ns)
{
    clock_sleep_until(clock_now_ns() + ns);
}

// ---- the others ------------------------------------------------------------------------------

static int slow_infer(void *self, const struct policy_observation *obs, float *actions)
{
    nap(MS);
    return script_infer(self, obs, actions);
}

static void *streams(void *arg)
{
    struct crowd *c = arg;
    while (!c->stop) {
        ns_t now = clock_now_ns();
        rig_joints(c->r, now);
        for (int i = 0; i < CAMERAS; i++)
            rig_frame(c->r, i, 1, now);
        nap(10 * MS);
    }
    return NULL;
}

// Generations never go back, and one generation is one policy.
static void take(struct crowd *c, uint32_t *generation, float *first)
{
    struct rig *r = c->r;
    while (ring_pop(&r->board.chunks, r->chunk)) {
        float is = r->chunk->row[0];
        if (r->chunk->generation < *generation ||
            (r->chunk->generation == *generation && fabsf(is - *first) > 1e-6f))
            c->wrong = true;
        c->changes += r->chunk->generation > *generation;
        if (r->chunk->generation > *generation)
            r->report.generation_tick = r->report.tick;
        *generation = r->report.generation = r->chunk->generation;
        *first = is;
        r->chunk_anchor = r->chunk->anchor_ns;
        c->chunks++;
    }
}

static void *loop(void *arg)
{
    struct crowd *c = arg;
    struct loop_report *p = &c->r->report;
    uint32_t generation = 0;
    float first = 0;
    while (!c->stop) {
        p->tick++;
        take(c, &generation, &first);
        p->mode = LADDER_RUNNING;
        p->wants_inference = true;
        p->chunk_step_ns = STEP;
        p->chunk_remaining =
            fmax(0, ROWS - (double)(clock_now_ns() - c->r->chunk_anchor) / (double)STEP);
        slot_write(&c->r->board.report, p);
        nap(5 * MS);
    }
    return NULL;
}

static void *looks(void *arg)
{
    struct crowd *c = arg;
    struct swap_report report;
    struct swap_policy policy;
    struct swap_entry entry[4];
    while (!c->stop) {
        const struct fitted *f = swap_hold(c->r->swap);
        double pose[JOINTS] = {0};
        float state[JOINTS];
        for (int i = 0; i < 20; i++) { // for a while
            binding_state(&f->binding, pose, state);
            if (f->info->chunk_size != ROWS || f->binding.n != JOINTS)
                c->wrong = true;
        }
        swap_release(c->r->swap);
        swap_policy_status(c->r->swap, &policy);
        if (swap_look(c->r->swap, policy.swaps + policy.swaps_failed, &report) &&
            report.stage < SWAP_LOADING)
            c->wrong = true;
        if (swap_list(c->r->swap, entry, 4) < 1)
            c->wrong = true;
        c->looks++;
        usleep(500);
    }
    return NULL;
}

static void *calls_off(void *arg)
{
    struct crowd *c = arg;
    while (!c->stop) {
        nap(95 * MS); // one in a few
        swap_cancel(c->r->swap, "for a test");
    }
    return NULL;
}

// ---- the rig with threads --------------------------------------------------------------------

static int load(void *arg, const char *name, const _Atomic bool *cancel,
                struct fitted **out, struct config_error *err)
{
    struct rig *r = arg;
    r->next.offset = 0.01 * (r->loads % 7);
    r->next.rc = r->loads % 9 == 8 ? -EDOM : 0;
    nap(5 * MS);
    int rc = rig_load(arg, name, cancel, out, err);
    if (rc == 0)
        (*out)->seat.brain.infer = slow_infer;
    return rc;
}

static void start(struct rig *r)
{
    struct config_error err = {{0}};
    struct fitted *first = &r->script[0].fitted;
    for (int i = 0; i < CAMERAS; i++) {
        camera_stop(r->camera[i]);
        assert_int_equal(
            camera_start(&r->camera[i], i ? "wrist" : "front", &r->board.camera[i], 0),
            0);
    }
    infer_free(r->infer);
    r->infer = NULL;
    r->icfg.camera_period_ns[0] = r->icfg.camera_period_ns[1] = 10 * MS;
    first->seat.brain.infer = slow_infer;
    if (infer_start(&r->infer, &r->icfg, &first->seat, r->camera, &r->board, &err))
        fail_msg("%s", err.text);
    const struct swap_source src = {.cfg = r->cfg,
                                    .board = &r->board,
                                    .infer = r->infer,
                                    .first = first,
                                    .deadline_ns = ROWS * STEP,
                                    .load = load,
                                    .unload = rig_unload,
                                    .load_arg = r};
    assert_int_equal(swap_new(&r->swap, &src), 0);
}

static void finish(struct rig *r)
{
    swap_stop(r->swap);
    infer_stop(r->infer);
    r->infer = NULL;
}

static void wait_for(struct rig *r, uint64_t number)
{
    struct swap_report out;
    ns_t end = clock_now_ns() + 20 * NS_PER_S;
    do {
        nap(MS);
        assert_true(swap_look(r->swap, number, &out));
    } while (out.stage < SWAP_DONE && clock_now_ns() < end);
    assert_true(out.stage >= SWAP_DONE);
}

static void all_at_once(void **state)
{
    struct rig *r = *state;
    static struct crowd c;
    void *(*const run[])(void *) = {streams, loop, looks, looks, calls_off};
    uint64_t number = 0;
    int busy = 0, begun = 0;
    char why[256];
    c = (struct crowd){.r = r};
    start(r);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&c.thread[i], NULL, run[i], &c), 0);
    for (ns_t end = clock_now_ns() + FOR_NS; clock_now_ns() < end;) {
        struct swap_request q = {.name = "other", .back = begun % 3 == 2};
        int rc = swap_begin(r->swap, &q, &number, why, sizeof why);
        begun += rc == 0;
        busy += rc == -EBUSY;
        assert_true(rc == 0 || rc == -EBUSY || rc == -ENOENT);
        if (rc == -ENOENT)
            begun++;
        if (begun % 4 && number)
            wait_for(r, number);
        else
            nap(2 * MS);
    }
    struct swap_policy p;
    swap_policy_status(r->swap, &p);
    finish(r); // in the midst of one, perhaps
    c.stop = true;
    for (int i = 0; i < 5; i++)
        pthread_join(c.thread[i], NULL);
    assert_false(c.wrong);
    assert_true(busy > 0 && c.looks > 10 && c.chunks > 10);
    if (p.swaps < 5 || p.swaps_failed < 1)
        fail_msg("%d swaps, %d failed", (int)p.swaps, (int)p.swaps_failed);
    assert_true(c.changes >= p.swaps - 1);
    swap_free(r->swap);
    r->swap = NULL;
    for (int i = 0; i < SCRIPTS; i++)
        assert_int_equal(r->script[i].made, r->script[i].freed);
}

// It does not wait for a worker that hangs, and its owner gets everything back.
static _Atomic bool hang;

static int hanging_infer(void *self, const struct policy_observation *obs, float *actions)
{
    while (hang)
        nap(MS);
    return script_infer(self, obs, actions);
}

static int load_hanging(void *arg, const char *name, const _Atomic bool *cancel,
                        struct fitted **out, struct config_error *err)
{
    int rc = rig_load(arg, name, cancel, out, err);
    (*out)->seat.brain.infer = hanging_infer;
    return rc;
}

static void ends_while_a_trial_hangs(void **state)
{
    struct rig *r = *state;
    static struct crowd c;
    struct swap_request q = {.name = "other"};
    struct infer_tried t;
    uint64_t number;
    char why[256];
    c = (struct crowd){.r = r};
    start(r);
    r->swap->src.load = load_hanging;
    hang = true;
    assert_int_equal(pthread_create(&c.thread[0], NULL, streams, &c), 0);
    assert_int_equal(pthread_create(&c.thread[1], NULL, loop, &c), 0);
    assert_int_equal(swap_begin(r->swap, &q, &number, why, sizeof why), 0);
    do {
        nap(MS);
        infer_tried(r->infer, &t);
    } while (t.state != TRIAL_THINKS);
    ns_t since = clock_now_ns();
    swap_stop(r->swap);
    assert_in_range(clock_now_ns() - since, 0, 5 * NS_PER_S);
    struct swap_report out;
    assert_true(swap_look(r->swap, number, &out));
    assert_int_equal(out.result, -ECANCELED);
    assert_non_null(strstr(out.text, "actd ends"));
    assert_int_equal(r->frees, 0);
    hang = false;
    finish(r);
    c.stop = true;
    pthread_join(c.thread[0], NULL);
    pthread_join(c.thread[1], NULL);
    swap_free(r->swap);
    r->swap = NULL;
    assert_int_equal(r->frees, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_at_once),
        TEST(ends_while_a_trial_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
