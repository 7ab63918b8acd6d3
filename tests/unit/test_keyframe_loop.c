// What the loop remembers, and that it is all: one that goes on from a keyframe, and one that gets
// another's recorded inputs, do what that other did, to the bit.
#include "tests/unit/count_allocations.h"
#include "tests/unit/loop_random.h"

#define STATE_MOST (256 << 10)

static unsigned char state_a[STATE_MOST], state_b[STATE_MOST];

static struct { // what the keyframes of this program were taken in
    unsigned states;
    int with_chunks, with_several, in_bridge, in_fade, held_back, outside, away, pushed,
        taken;
} seen;

static void note_what_it_is_taken_in(const struct loop *l, ns_t now)
{
    const struct chunks *q = l->chunks;

    seen.taken++;
    seen.states |= 1u << l->state;
    seen.with_chunks += q->n > 0;
    seen.with_several += q->n > 1;
    seen.in_bridge +=
        q->bridge.length_ns > 0 && now - q->bridge.start_ns < q->bridge.length_ns;
    seen.in_fade +=
        q->n > 0 && now - q->live[q->n - 1].shown_ns < q->live[q->n - 1].fade_ns;
    seen.held_back += l->faults.latched != 0;
    seen.outside += l->outside;
    seen.away += l->away > 0;
    for (int i = 0; i < R_JOINTS; i++)
        seen.pushed += l->following[i] > 0;
}

static void same_states(struct rig *a, struct rig *b, uint64_t tick)
{
    size_t n = keyframe_loop_bytes(a->loop, tick, state_a, sizeof state_a);
    size_t m = keyframe_loop_bytes(b->loop, tick, state_b, sizeof state_b);

    assert_true(n > 0);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        if (state_a[i] != state_b[i])
            fail_msg("before tick %lu: byte %zu of %zu differs", (unsigned long)tick, i,
                     n);
}

static void same_tick(struct rig *a, struct rig *b, const struct stimulus *s)
{
    size_t n, m;
    const struct tick_record *x, *y;

    rig_tick(a, s);
    rig_tick(b, s);
    x = rig_record(a, &n);
    y = rig_record(b, &m);
    assert_int_equal(x->in.tick, s->tick);
    assert_int_equal(n, tick_record_bytes(R_JOINTS));
    assert_int_equal(n, m);
    if (memcmp(x, y, n) != 0)
        fail_msg("tick %lu: the records differ", (unsigned long)s->tick);
    assert_int_equal(a->got, b->got);
    if (a->got && memcmp(&a->command, &b->command, sizeof a->command) != 0)
        fail_msg("tick %lu: the commands differ", (unsigned long)s->tick);
}

// ---- from a keyframe -------------------------------------------------------------------------

static void goes_on(uint64_t seed, int before, int after)
{
    struct chance w;
    struct rig a, b;
    struct loop_config cfg;
    char why[160];
    size_t n;

    chance_start(&w, seed);
    cfg = random_config(&w.seed);
    rig_start(&a, &cfg);
    rig_start(&b, &cfg);
    tape_turn(a.tape, true);
    tape_turn(b.tape, true);
    for (int i = 0; i < before; i++) {
        rig_tick(&a, chance_next(&w, &a));
        (void)rig_record(&a, &n);
    }
    note_what_it_is_taken_in(a.loop, w.s.now);
    n = keyframe_loop_bytes(a.loop, w.s.tick + 1, state_a, sizeof state_a);
    assert_true(n > 0);
    if (keyframe_loop_restore(b.loop, state_a, n, why) != 0)
        fail_msg("%s", why);
    b.got = a.got;
    b.sequence = a.sequence;
    b.command = a.command;
    atomic_store(&b.board.lost_command,
                 a.board.lost_command); // the board's, not the loop's
    same_states(&a, &b, w.s.tick + 1);
    for (int i = 0; i < after; i++)
        same_tick(&a, &b, chance_next(&w, &a));
    same_states(&a, &b, w.s.tick + 1);
    rig_end(&a);
    rig_end(&b);
}

static void another_goes_on(void **state)
{
    (void)state;
    uint64_t seed = 99;

    goes_on(1, 0, 2000);
    for (uint64_t i = 2; i <= 120; i++)
        goes_on(i, (int)(draw(&seed) % 4000), i <= 40 ? 2000 : 200);
    // Or it was a test of an arm that stood still.
    for (int s = LADDER_WAITING; s <= LADDER_HOMING; s++)
        if (s != LADDER_READY && !(seen.states >> s & 1))
            fail_msg("none of %d keyframes was taken in %s", seen.taken,
                     ladder_state_name((enum ladder_state)s));
    assert_true(seen.with_chunks > 60 && seen.with_several > 30 && seen.in_bridge > 0 &&
                seen.in_fade > 5 && seen.held_back > 20);
    assert_true(seen.outside > 0 && seen.away > 0 && seen.pushed > 0);
}

// ---- on the tape -----------------------------------------------------------------------------

// It is there before the tick that comes after it, when it was asked for, and no allocation is made
// for it or for the record.
static void onto_the_tape(void **state)
{
    (void)state;
    struct chance w;
    struct rig a, b;
    struct loop_config cfg;
    struct keyframe_head h;
    const struct tape_entry *e;
    char why[160];
    size_t n;

    chance_start(&w, 5);
    cfg = random_config(&w.seed);
    rig_start(&a, &cfg);
    rig_start(&b, &cfg);
    for (int i = 0; i < 2000; i++) {
        rig_tick(&a, chance_next(&w, &a));
        assert_null(tape_peek(a.tape, TAPE_TICKS)); // off
    }
    tape_turn(a.tape, true);
    assert_true(tape_bus_state_due(a.tape));
    const struct stimulus *s = chance_next(&w, &a);
    n = keyframe_loop_bytes(a.loop, s->tick, state_a, sizeof state_a);
    counting = true;
    rig_tick(&a, s);
    counting = false;
    assert_int_equal(allocations, 0);
    e = tape_peek(a.tape, TAPE_TICKS);
    assert_non_null(e);
    assert_int_equal(e->kind, TAPE_LOOP_STATE);
    assert_int_equal(e->at_ns, s->now);
    assert_int_equal(e->size, n);
    memcpy(&h, e + 1, sizeof h);
    assert_int_equal(h.number, s->tick);
    assert_int_equal(h.at_ns, s->now);
    memcpy(state_b, e + 1, n);
    memcpy(state_b + offsetof(struct keyframe_head, at_ns),
           state_a + offsetof(struct keyframe_head, at_ns), sizeof h.at_ns);
    assert_memory_equal(state_a, state_b, n); // as the loop was before the tick
    assert_int_equal(keyframe_loop_restore(b.loop, e + 1, e->size, why), 0);
    assert_int_equal(rig_record(&a, &n)->in.tick, s->tick);
    // Of a tick of its own: the one after has none.
    rig_tick(&a, chance_next(&w, &a));
    assert_int_equal(tape_peek(a.tape, TAPE_TICKS)->kind, TAPE_TICK);
    rig_end(&a);
    rig_end(&b);
}

// ---- refused ---------------------------------------------------------------------------------

// A loop that has gone some way, and its state in state_a.
static size_t some_state(struct rig *a, struct loop_config *cfg)
{
    struct chance w;

    chance_start(&w, 77);
    *cfg = random_config(&w.seed);
    rig_start(a, cfg);
    while (a->loop->chunks->n < 2 || w.s.tick < 1000)
        rig_tick(a, chance_next(&w, a));
    return keyframe_loop_bytes(a->loop, w.s.tick + 1, state_a, sizeof state_a);
}

static void refuse(struct loop *l, size_t n, const char *for_what)
{
    char why[160];

    assert_int_equal(keyframe_loop_restore(l, state_b, n, why), -22);
    if (strstr(why, for_what) == NULL)
        fail_msg("\"%s\" says nothing of \"%s\"", why, for_what);
}

static void others_are_refused(void **state)
{
    (void)state;
    struct rig a, b;
    struct loop_config cfg;
    struct keyframe_head *h = (struct keyframe_head *)(void *)state_b;
    size_t n = some_state(&a, &cfg), fixed;

    fixed = sizeof *h + sizeof(struct loop) - offsetof(struct loop, guard) +
            sizeof(struct chunks);
    rig_start(&b, &cfg);
    memcpy(state_b, state_a, n);
    h->build++;
    refuse(b.loop, n, "another build");
    memcpy(state_b, state_a, n);
    h->kind = KEYFRAME_BUS;
    refuse(b.loop, n, "damaged");
    memcpy(state_b, state_a, n);
    h->capacity++;
    refuse(b.loop, n, "another robot");
    for (size_t m = 0; m < n; m += m < 256 || m + 64 > n ? 1 : 13) { // cut anywhere,
        memcpy(state_b, state_a, n);
        refuse(b.loop, m, m < fixed ? "cut" : "damaged");
        h->bytes = m; // whatever it says of its length
        refuse(b.loop, m, m < fixed ? "cut" : "damaged");
    }
    memcpy(state_b, state_a, n);
    h->bytes = n + 8; // more behind it
    refuse(b.loop, n + 8, "damaged");
    // It is as it was.
    assert_int_equal(b.loop->state, LADDER_INIT);
    assert_int_equal(b.loop->chunks->n, 0);
    rig_end(&a);
    rig_end(&b);
}

// Whatever is damaged, no place outside is read or written: for the sanitizers. What is accepted
// has damaged numbers only.
static void damage_is_survived(void **state)
{
    (void)state;
    struct rig a, b;
    struct loop_config cfg;
    size_t n = some_state(&a, &cfg);
    uint64_t seed = 3;
    int refused = 0;

    rig_start(&b, &cfg);
    for (int i = 0; i < 20000; i++) {
        char why[160];

        memcpy(state_b, state_a, n);
        for (uint64_t k = 1 + draw(&seed) % 8; k > 0; k--)
            state_b[sizeof(struct keyframe_head) +
                    draw(&seed) % (n - sizeof(struct keyframe_head))] =
                (unsigned char)draw(&seed);
        refused += keyframe_loop_restore(b.loop, state_b, n, why) != 0;
        assert_true(b.loop->state >= LADDER_INIT && b.loop->state <= LADDER_HOMING);
        for (int c = 0; c < b.loop->chunks->n; c++)
            assert_true(b.loop->chunks->live[c].row >= b.loop->chunks->rows &&
                        b.loop->chunks->live[c].rows <= cfg.chunks.rows);
    }
    assert_true(refused > 100);
    rig_end(&a);
    rig_end(&b);
}

// Limits and budgets are the configuration's, whatever the keyframe was taken with.
static void what_is_configured_stays(void **state)
{
    (void)state;
    struct rig a, b;
    struct loop_config cfg;
    size_t n = some_state(&a, &cfg);
    char why[160];

    cfg.limits.max[0] = 1.5;
    cfg.budget_ns[BOARD_TICK] = 7;
    cfg.chunks.fade_ns = 9;
    rig_start(&b, &cfg);
    assert_int_equal(keyframe_loop_restore(b.loop, state_a, n, why), 0);
    assert_true(b.loop->guard.lim.max[0] == 1.5 && b.loop->sent.lim.max[0] == 1.5 &&
                b.loop->left.lim.max[0] == 1.5);
    assert_int_equal(b.loop->budget[BOARD_TICK].limit_ns, 7);
    assert_true(b.loop->budget[BOARD_TICK].histogram == &b.board.tick_time);
    assert_int_equal(b.loop->budget[BOARD_TICK].samples,
                     a.loop->budget[BOARD_TICK].samples);
    assert_int_equal(b.loop->chunks->cfg.fade_ns, 9);
    assert_true(b.loop->board == &b.board);
    rig_end(&a);
    rig_end(&b);
}

// ---- from recorded inputs --------------------------------------------------------------------

#define RUN 6000
struct run {
    struct tick_record record[RUN];
    struct command command[RUN];
    struct joint_sample sample[RUN]; // by number
    struct random_chunk chunk[RUN];  // by number, as they were handed over
    uint64_t chunks;
};

static void record_run(struct run *run, uint64_t seed, struct loop_config *cfg)
{
    struct chance w;
    struct rig a;
    size_t n;

    memset(run, 0, sizeof *run);
    chance_start(&w, seed);
    *cfg = random_config(&w.seed);
    rig_start(&a, cfg);
    tape_turn(a.tape, true);
    for (int i = 0; i < RUN; i++) {
        const struct stimulus *s = chance_next(&w, &a);
        const struct tick_record *r;

        if (s->joints_new)
            run->sample[s->joints.number] = s->joints;
        for (int k = 0; k < s->chunks; k++)
            run->chunk[++run->chunks] = s->chunk[k];
        rig_tick(&a, s);
        r = rig_record(&a, &n);
        memcpy(&run->record[i], r, n);
        if (a.got)
            run->command[i] = a.command;
        assert_int_equal(a.got, r->published);
    }
    rig_end(&a);
}

static const struct tick_inputs *handed;
static int handed_out;
static ns_t recorded_clock(void)
{
    handed_out++;
    return handed_out == 1 && handed->made_ns != 0 ? handed->made_ns
                                                   : handed->reported_ns;
}

// The whole of a replay's core: the recorded inputs of one tick onto a board, and its times.
static void replay_tick(struct rig *r, const struct run *run,
                        const struct tick_inputs *in)
{
    struct stimulus s;

    memset(&s, 0, sizeof s);
    s.now = in->now_ns;
    s.refused_in_a_row = in->joints_refused_in_a_row;
    s.refused_for = in->joints_refused_for;
    s.refused_joint = in->joints_refused_joint;
    s.refused_value = in->joints_refused_value;
    s.joints_slow = in->joints_slow;
    memcpy(s.camera, in->camera, sizeof s.camera);
    s.requests = in->requests;
    s.stalls = in->stalls;
    s.failures = in->policy_failures;
    s.inferring = in->inferring;
    s.starved = in->starved;
    s.started = in->started;
    put_marks(&r->board, &s);
    if (in->joint_sample_new)
        slot_write(&r->board.joints, &run->sample[in->joint_sample]);
    for (uint64_t k = 1; k <= in->chunks_taken; k++)
        put_chunk(&r->board, &run->chunk[in->chunks_before + k]);
    atomic_store(&r->board.lost_command, in->lost_command);
    if (!in->room)
        (void)ring_push(&r->board.commands, &r->command);
    loop_worked(r->loop, in->last_work_ns);
    handed = in;
    handed_out = 0;
    loop_tick(r->loop, in->tick, in->now_ns, in->lateness_ns, recorded_clock);
    assert_int_equal(handed_out, in->made_ns != 0 ? 3 : 2);
    if (!in->room)
        ring_release(&r->board.commands);
    r->got = ring_pop(&r->board.commands, &r->command);
}

// Replays it; the first tick whose record or command is another, or RUN.
static int first_difference(const struct run *run, const struct loop_config *cfg)
{
    struct rig b;
    int i;

    rig_start(&b, cfg);
    tape_turn(b.tape, true);
    for (i = 0; i < RUN; i++) {
        const struct tick_record *r;
        size_t n;

        replay_tick(&b, run, &run->record[i].in);
        r = rig_record(&b, &n);
        if (memcmp(r, &run->record[i], n) != 0 || b.got != run->record[i].published)
            break;
        if (b.got && memcmp(&b.command, &run->command[i], sizeof b.command) != 0)
            break;
    }
    rig_end(&b);
    return i;
}

static void recorded_inputs_are_all(void **state)
{
    (void)state;
    struct run *run = malloc(sizeof *run);
    struct loop_config cfg;
    uint64_t refused = 0, moving = 0;

    assert_non_null(run);
    for (uint64_t seed = 1000; seed < 1012; seed++) {
        record_run(run, seed, &cfg);
        assert_int_equal(first_difference(run, &cfg), RUN);
        for (int i = 0; i < RUN; i++) {
            refused += !run->record[i].in.room;
            moving += run->record[i].mode == LADDER_RUNNING;
        }
    }
    assert_true(refused > 100 && moving > 3000);
    free(run);
}

// And none of them is there for nothing: another one, and the outcome is another, at once or later.
static void every_input_counts(void **state)
{
    (void)state;
    struct run *run = malloc(sizeof *run);
    struct loop_config cfg;
    int k = 1500;

    assert_non_null(run);
    record_run(run, 1003, &cfg);
    assert_int_equal(first_difference(run, &cfg), RUN);
    while (!(run->record[k].mode == LADDER_RUNNING &&
             run->record[k].in.joint_sample_new && run->record[k].in.made_ns != 0))
        k++;
#define CHANGED(what, change, back)                       \
    do {                                                  \
        struct tick_inputs was = run->record[k].in;       \
        int at;                                           \
        change;                                           \
        at = first_difference(run, &cfg);                 \
        run->record[k].in = was;                          \
        back;                                             \
        if (at == RUN)                                    \
            fail_msg("another %s changes nothing", what); \
    } while (0)
#define IN(field, value) CHANGED(#field, run->record[k].in.field = (value), (void)0)
    struct joint_sample *s = &run->sample[run->record[k].in.joint_sample];
    CHANGED("joint position", s->pos[0] += 1e-12, s->pos[0] -= 1e-12);
    float *row = run->chunk[run->record[k].in.chunks_before].row, first = row[20];
    CHANGED("row", row[20] += 1e-5f, row[20] = first);
    IN(requests, BOARD_STOP);
    IN(stalls, was.stalls + 1);
    IN(started, false);
    IN(policy_failures, 3);
    IN(made_ns, was.made_ns + 1);
    IN(now_ns, was.now_ns + 1);
    IN(lateness_ns, was.lateness_ns + 1);
    IN(room, false);
    IN(lost_command, run->record[k - 1].sequence);
    IN(joints_refused_in_a_row, 3);
    IN(joints_slow, !was.joints_slow);
    IN(camera[1].received_ns, 1);
    IN(camera[0].corrupt_in_a_row, 5);
    assert_int_equal(first_difference(run, &cfg), RUN);
    for (int i = k; i < k + 40; i++) // one slow tick is nothing
        run->record[i].in.last_work_ns = NS_PER_S;
    assert_in_range(first_difference(run, &cfg), k, k + 40);
    free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_goes_on),
        cmocka_unit_test(onto_the_tape),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(damage_is_survived),
        cmocka_unit_test(what_is_configured_stays),
        cmocka_unit_test(recorded_inputs_are_all),
        cmocka_unit_test(every_input_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
