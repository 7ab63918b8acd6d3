// What a status says of now: joints, the chunk, the policy, the explanation, the histograms of the
// whole run; that any plain thread may ask for one at any time; and how long it may become.
#include <math.h>
#include <pthread.h>

#include "tests/unit/status_rig.h"

static void pack(struct rig *r)
{
    slot_write(&r->board.report, &r->report);
    if (r->got)
        actd__v1__status__free_unpacked(r->got, NULL);
    size_t n = status_pack(r->status, r->message, sizeof r->message);
    assert_in_range(n, 1, STATUS_MOST);
    r->got = actd__v1__status__unpack(NULL, n, r->message);
    assert_non_null(r->got);
}

// The status as it is with another source.
static void renew(struct rig *r)
{
    status_free(r->status);
    assert_int_equal(status_new(&r->status, &r->source), 0);
}

static void tells_each_joint(void **state)
{
    struct rig *r = *state;
    r->cfg.joint[1].min = -1.5;
    r->cfg.joint[1].max = 2.5;
    r->report.measured[1] = 0.25;
    r->report.pos[1] = 0.5;
    r->report.vel[1] = -0.75;
    r->report.wanted[0] = NAN;
    r->report.wanted[1] = 3;
    r->report.limit[1] = GUARD_POSITION;
    pack(r);
    assert_int_equal(r->got->n_joints, 2);
    const Actd__V1__JointStatus *j = r->got->joints[1];
    assert_string_equal(j->name, "turn");
    assert_true(j->measured == 0.25 && j->commanded == 0.5 && j->velocity == -0.75 &&
                j->wanted == 3 && j->min == -1.5 && j->max == 2.5);
    assert_int_equal(j->limit, ACTD__V1__LIMIT__LIMIT_POSITION);
    assert_int_equal(r->got->joints[0]->limit, ACTD__V1__LIMIT__LIMIT_NONE);
    assert_true(isnan(r->got->joints[0]->wanted));
}

static void tells_the_chunk(void **state)
{
    struct rig *r = *state;
    ns_t now = clock_now_ns();
    pack(r);
    assert_true(r->got->chunk->id == 0 && r->got->chunk->age_ns == 0);
    r->report.chunk_id = 9;
    r->report.chunk_row = 3.25;
    r->report.chunk_remaining = 6.75;
    r->report.chunk_rows = 10;
    r->report.chunk_step_ns = 20 * NS_PER_MS;
    r->report.chunk_blended = 2;
    r->report.chunk_anchor_ns = now - 100 * NS_PER_S; // of the newest
    r->report.chunk_oldest_ns = now - 200 * NS_PER_S; // of any of the two
    pack(r);
    const Actd__V1__ChunkStatus *c = r->got->chunk;
    assert_true(c->id == 9 && c->row == 3.25 && c->remaining == 6.75);
    assert_true(c->rows == 10 && c->blended == 2 && c->step_ns == 20 * NS_PER_MS);
    assert_in_range(c->age_ns, 100 * NS_PER_S, 130 * NS_PER_S);
    r->report.chunk_blended = 1; // alone: its anchor may have been moved
    pack(r);
    assert_in_range(r->got->chunk->age_ns, 200 * NS_PER_S, 230 * NS_PER_S);
    r->report.chunk_oldest_ns = now + 3600 * NS_PER_S; // a clock ahead
    pack(r);
    assert_int_equal(r->got->chunk->age_ns, 0);
}

static void tells_the_policy(void **state)
{
    struct rig *r = *state;
    static struct policy_info info; // large
    r->report.generation = 7;
    pack(r); // nothing known but where it is
    const Actd__V1__PolicyStatus *p = r->got->policy_in_use;
    assert_string_equal(p->name, "reach");
    assert_string_equal(p->directory, "/p/reach");
    assert_true(p->type[0] == '\0' && p->digest[0] == '\0' && p->generation == 7);
    snprintf(info.type, sizeof info.type, "act");
    memset(info.digest, 'a', POLICY_DIGEST_HEX - 1);
    memset(info.config_sha256, 'b', POLICY_DIGEST_HEX - 1);
    memset(info.weights_sha256, 'c', POLICY_DIGEST_HEX - 1);
    memset(info.statistics_sha256, 'd', POLICY_DIGEST_HEX - 1);
    info.precision = PRECISION_BF16;
    r->source.policy = &info;
    renew(r);
    pack(r);
    p = r->got->policy_in_use;
    assert_string_equal(p->type, "act");
    assert_string_equal(p->digest, info.digest);
    assert_string_equal(p->config_sha256, info.config_sha256);
    assert_string_equal(p->weights_sha256, info.weights_sha256);
    assert_string_equal(p->statistics_sha256, info.statistics_sha256);
    assert_string_equal(p->precision, "bf16");
}

static void tells_the_policy_of_a_swap(void **state)
{
    struct rig *r = *state;
    of_swap = (struct swap_policy){.name = "new",
                                   .directory = "/elsewhere/new",
                                   .type = "act",
                                   .precision = "int8",
                                   .digest = "d",
                                   .config_sha256 = "c",
                                   .weights_sha256 = "w",
                                   .statistics_sha256 = "s",
                                   .generation = 3,
                                   .since_tick = 4711,
                                   .previous = "old",
                                   .swaps = 2,
                                   .swaps_failed = 5,
                                   .swapping_to = "newer"};
    r->source.swap = (struct swap *)(void *)r; // only handed on
    renew(r);
    pack(r);
    const Actd__V1__PolicyStatus *p = r->got->policy_in_use;
    assert_string_equal(r->got->policy, "/elsewhere/new");
    assert_string_equal(p->directory, "/elsewhere/new");
    assert_string_equal(p->name, "new");
    assert_string_equal(p->previous, "old");
    assert_string_equal(p->swapping_to, "newer");
    assert_string_equal(p->digest, "d");
    assert_string_equal(p->config_sha256, "c");
    assert_string_equal(p->weights_sha256, "w");
    assert_string_equal(p->statistics_sha256, "s");
    assert_string_equal(p->precision, "int8");
    assert_true(p->generation == 3 && p->since_tick == 4711 && p->swaps == 2 &&
                p->swaps_failed == 5);
}

// As it was in the tick of the step that led here; as it is now where there is no such step.
static void explains_where_it_is(void **state)
{
    struct rig *r = *state;
    pack(r);
    assert_string_equal(r->got->explanation, "");
    r->cfg.joint[1].following_error = 0.2;
    r->report.mode = LADDER_STOPPED;
    r->report.reason = REASON_FOLLOWING_ERROR;
    r->report.events = 1;
    r->report.event[0] = (struct loop_event){.from = LADDER_STOPPING,
                                             .to = LADDER_STOPPED,
                                             .reason = REASON_FOLLOWING_ERROR,
                                             .index = 1,
                                             .value = 0.375};
    pack(r);
    has(r->got->explanation, "turn is 0.375 rad from its command");
    r->report.mode = LADDER_WAITING;
    r->report.reason = REASON_JOINTS_MISSING; // not what the event was of
    snprintf(r->cfg.joint_state.endpoint, CONFIG_PATH, "tcp://arm:1");
    pack(r);
    has(r->got->explanation, "nothing yet on tcp://arm:1");
    // Another's sources count, but the rates are ours.
    struct config other = r->cfg;
    struct explain_source source = {.cfg = &other, .board = &r->board};
    snprintf(other.joint_state.endpoint, CONFIG_PATH, "ipc://other");
    r->source.explain = &source;
    renew(r);
    pack(r);
    has(r->got->explanation, "ipc://other");
    r->report.reason = REASON_STARTING;
    r->board.joint_mark.received = 1;
    nap(PERIOD);
    publish(r); // it began somewhere within this period
    has(r->got->explanation, "waits until every stream");
    r->board.joint_mark.received = 2;
    nap(PERIOD);
    publish(r);
    has(r->got->explanation, "joint states come at 2."); // 1 in 0.4 s; 50 Hz are declared
}

// A rate is not disturbed by who asks meanwhile.
static void asking_changes_nothing(void **state)
{
    struct rig *r = *state;
    r->report.commands = 40;
    of_infer.done = 12;
    r->board.joint_mark.received = 20;
    for (int i = 0; i < 50; i++)
        hist_add(&r->board.lateness, 10000);
    nap(PERIOD);
    publish(r);
    double hz = r->got->achieved_hz, inference = r->got->inference_hz,
           joints = r->got->streams[0]->achieved_hz;
    assert_true(hz > 0 && inference > 0 && joints > 0);
    r->report.commands = 45;
    r->board.joint_mark.received = 21;
    for (int i = 0; i < 3; i++)
        pack(r);
    assert_true(r->got->achieved_hz == hz && r->got->inference_hz == inference &&
                r->got->streams[0]->achieved_hz == joints);
    assert_int_equal(r->got->second_lateness->count, 50);
    assert_true(r->got->commands == 45 && r->got->streams[0]->received == 21);
    r->board.camera[0].corrupt = 1;
    pack(r);
    assert_int_equal(dropped(r, "front frames corrupt"), 1);
    has(publish(r), "dropped: front frames corrupt +1\n"); // it is said all the same
}

// ---- histograms ------------------------------------------------------------------------------

static uint64_t add_up(const Actd__V1__Histogram *h)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < h->n_buckets; i++) {
        assert_true(h->buckets[i]->count > 0);
        assert_true(i == 0 || h->buckets[i]->below_ns > h->buckets[i - 1]->below_ns);
        sum += h->buckets[i]->count;
    }
    return sum;
}

// How many samples below a bound: what a scraper makes of it.
static uint64_t below(const Actd__V1__Histogram *h, uint64_t bound)
{
    uint64_t n = 0;
    for (size_t i = 0; i < h->n_buckets; i++)
        n += h->buckets[i]->below_ns <= bound ? h->buckets[i]->count : 0;
    return n;
}

static void tells_buckets_of_the_whole_run(void **state)
{
    struct rig *r = *state;
    struct histogram *all[] = {&r->board.lateness, &r->board.tick_time,
                               &r->board.inference, &r->board.chunk_latency,
                               &r->board.sensor_age};
    for (int k = 0; k < 5; k++)
        for (int i = 0; i <= k; i++) {
            hist_add(all[k], 3000);
            hist_add(all[k], 1000000 + 100000 * k);
        }
    pack(r);
    const Actd__V1__Status *m = r->got;
    const Actd__V1__Histogram *got[] = {m->lateness, m->tick_time, m->inference,
                                        m->chunk_latency,
                                        m->budgets[BOARD_SENSOR]->histogram};
    for (int k = 0; k < 5; k++) {
        double sum = (k + 1) * (3000.0 + 1000000 + 100000 * k);
        assert_int_equal(got[k]->count, 2 * (k + 1));
        assert_int_equal(add_up(got[k]), 2 * (k + 1));
        assert_int_equal(got[k]->n_buckets, 2);
        assert_int_equal(below(got[k], 2560), 0); // 4 per power of two
        assert_int_equal(below(got[k], 3072), k + 1);
        NEAR((double)got[k]->sum_ns, sum, sum / 32);
    }
    for (int b = 0; b < BOARD_BUDGETS; b++) // each only once
        assert_true(b == BOARD_SENSOR || m->budgets[b]->histogram->n_buckets == 0);
    assert_int_equal(m->second_lateness->n_buckets + m->second_inference->n_buckets, 0);
}

// Against every sample: cumulative counts at the bounds, for each coarseness.
static void merges_without_loss(void **state)
{
    struct rig *r = *state;
    static struct hist_detail d;
    uint64_t seed = 7;
    enum { N = 20000 };
    static uint64_t sample[N];
    double sum = 0;

    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sample[i] = (seed >> 20) >> (seed % 43); // up to 2.4 hours and beyond
        hist_add(&r->board.inference, (ns_t)sample[i]);
        sum += (double)(sample[i] < UINT64_C(1) << 43 ? sample[i] : UINT64_C(0));
    }
    for (int merge = HIST_MERGE_LEAST - 1; merge <= HIST_MERGE_MOST + 1; merge++) {
        uint64_t all = 0;

        hist_detail(&r->board.inference, merge, &d);
        assert_in_range(d.n, 10, HIST_BUCKETS >> HIST_MERGE_LEAST);
        for (int i = 0; i < d.n; i++) {
            uint64_t n = 0;

            all += d.bucket[i].count;
            for (int k = 0; k < N; k++)
                n += sample[k] < d.bucket[i].below_ns;
            if (n != all)
                fail_msg("merge %d, below %llu: %llu, not %llu", merge,
                         (unsigned long long)d.bucket[i].below_ns,
                         (unsigned long long)all, (unsigned long long)n);
        }
        assert_int_equal(all, N);
        assert_int_equal(d.summary.count, N);
        assert_true((double)d.sum_ns >= sum * 31 / 32);
    }
    struct histogram_summary s = hist_summary(&r->board.inference);
    assert_memory_equal(&s, &d.summary, sizeof s);
}

// ---- how long --------------------------------------------------------------------------------

static void fill_histograms(struct rig *r)
{
    struct histogram *all[] = {&r->board.lateness, &r->board.tick_time,
                               &r->board.inference, &r->board.chunk_latency,
                               &r->board.sensor_age};
    for (int k = 0; k < 5; k++)
        for (ns_t v = 1; v < INT64_C(1) << 45; v += v / 32 + 1)
            hist_add(all[k], v);
}

static void everything_at_once(struct rig *r)
{
    everything_wrong(r);
    for (int j = 0; j < JOINTS; j++)
        r->report.seam[j] = (struct seam_report){1e-9, 1e-9, UINT64_MAX};
    for (int f = 0; f < LADDER_REASONS; f++)
        r->report.faults.of[f] =
            (struct fault_count){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    r->report.faults.active = r->report.faults.latched = UINT64_MAX;
    for (int b = 0; b < BOARD_BUDGETS; b++)
        r->report.budget[b] =
            (struct budget_report){INT64_MAX,  INT64_MAX,  UINT64_MAX, UINT64_MAX,
                                   UINT64_MAX, UINT32_MAX, UINT32_MAX, true};
    for (int c = 0; c < CAMERAS; c++) {
        struct camera_mark *m = &r->board.camera[c];
        m->out_of_order = m->clock_jumps = UINT64_MAX;
    }
    longest(of_swap.name, sizeof of_swap.name, 0);
    longest(of_swap.directory, sizeof of_swap.directory, 0);
    longest(of_swap.previous, sizeof of_swap.previous, 0);
    longest(of_swap.swapping_to, sizeof of_swap.swapping_to, 0);
    longest(of_swap.precision, sizeof of_swap.precision, 0);
    longest(of_swap.digest, sizeof of_swap.digest, 0);
    longest(of_swap.config_sha256, sizeof of_swap.digest, 0);
    longest(of_swap.weights_sha256, sizeof of_swap.digest, 0);
    longest(of_swap.statistics_sha256, sizeof of_swap.digest, 0);
    of_bus.superseded = of_bus.expired = of_bus.cut = of_bus.wall_sets = UINT64_MAX;
    r->board.joint_mark.out_of_order = r->board.joint_mark.clock_jumps = UINT64_MAX;
    r->report.mode = LADDER_WAITING;
    r->report.reason = REASON_JOINTS_INVALID; // a long explanation
    r->source.swap = (struct swap *)(void *)r;
    renew(r);
}

static void fits_whatever_there_is(void **state)
{
    struct rig *r = *state;
    static uint8_t small[1024];

    fill_histograms(r);
    pack(r); // few names: as fine as can be
    assert_int_equal(r->got->lateness->n_buckets, HIST_BUCKETS >> HIST_MERGE_LEAST);
    everything_at_once(r);
    pack(r);
    const Actd__V1__Status *m = r->got;
    assert_int_equal(m->n_joints, JOINTS);
    assert_int_equal(m->n_limited, JOINTS * (GUARD_LIMITS - 1));
    assert_int_equal(m->n_faults, LADDER_REASONS - 1);
    assert_true(m->lateness->n_buckets >= 10);
    assert_int_equal(add_up(m->lateness), m->lateness->count);
    assert_int_equal(add_up(m->budgets[BOARD_SENSOR]->histogram), m->lateness->count);
    print_message("the longest message has %zu bytes, %zu buckets in each histogram\n",
                  actd__v1__status__get_packed_size(m), m->lateness->n_buckets);
    assert_int_equal(status_pack(r->status, small, sizeof small), 0);
    // Where there is room but for buckets, there are none.
    size_t all = actd__v1__status__get_packed_size(m), n = 0;
    for (size_t less = 0; less < all && n == 0; less += 64)
        n = status_pack(r->status, r->message, all - less);
    assert_true(n > 0);
    size_t least = all;
    while (least > 64 && status_pack(r->status, r->message, least - 64) > 0)
        least -= 64;
    n = status_pack(r->status, r->message, least);
    Actd__V1__Status *bare = actd__v1__status__unpack(NULL, n, r->message);
    assert_non_null(bare);
    assert_true(bare->lateness->n_buckets == 0 && bare->lateness->count > 0);
    assert_int_equal(bare->n_joints, JOINTS);
    actd__v1__status__free_unpacked(bare, NULL);
}

// ---- threads ---------------------------------------------------------------------------------

struct asker {
    struct rig *rig;
    pthread_t thread;
    int good;
};

static void *asks(void *arg)
{
    struct asker *a = arg;
    uint8_t *out = malloc(STATUS_MOST);

    for (int i = 0; i < 300 && out; i++) {
        size_t n = status_pack(a->rig->status, out, STATUS_MOST);
        Actd__V1__Status *m = actd__v1__status__unpack(NULL, n, out);
        double hz[POLICY_MAX_CAMERAS + 1];

        status_received_hz(a->rig->status, hz);
        a->good +=
            m && m->commands == m->ticks && add_up(m->lateness) == m->lateness->count;
        if (m)
            actd__v1__status__free_unpacked(m, NULL);
    }
    free(out);
    return NULL;
}

static void any_thread_may_ask(void **state)
{
    struct rig *r = *state;
    struct asker a[3];

    r->source.publisher = NULL;
    renew(r);
    slot_write(&r->board.report, &r->report);
    for (int i = 0; i < 3; i++) {
        a[i] = (struct asker){.rig = r};
        assert_int_equal(pthread_create(&a[i].thread, NULL, asks, &a[i]), 0);
    }
    for (int i = 0; i < 100; i++) {
        r->report.ticks_run++;
        r->report.commands++;
        slot_write(&r->board.report, &r->report);
        hist_add(&r->board.lateness, 1000 * i);
        said(r, status_publish);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(a[i].thread, NULL);
        assert_int_equal(a[i].good, 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_each_joint),
        TEST(tells_the_chunk),
        TEST(tells_the_policy),
        TEST(tells_the_policy_of_a_swap),
        TEST(explains_where_it_is),
        TEST(asking_changes_nothing),
        TEST(tells_buckets_of_the_whole_run),
        TEST(merges_without_loss),
        TEST(fits_whatever_there_is),
        TEST(any_thread_may_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
