// The recorder: what goes in comes out again, in files that are whole, and none too late.
#include "tests/unit/recorder_world.h"

static void stop(struct world *w)
{
    recorder_finish(w->r, w->now);
}

static struct tape_seat a_seat(uint32_t generation, const char *name)
{
    struct tape_seat s;

    memset(&s, 0, sizeof s);
    s.generation = generation;
    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

// ---- contents ------------------------------------------------------------------------------------

static void everything_is_there_once(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 3, 20);
    tape_command(w.tape, w.now, "cmd", 3);
    tape_event(w.tape, w.now, TAPE_LEVEL_INFO, "mark", "here it was");
    stop(&w);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    assert_int_equal(f.ticks, 600);
    assert_false(f.gap);
    assert_int_equal(f.first_tick, 1);
    assert_int_equal(f.joints, 600);
    assert_int_equal(f.frames, 60);
    assert_int_equal(f.inputs, 660);
    assert_int_equal(f.others, 1); // the command
    assert_int_equal(f.events, 1);
    assert_non_null(strstr(f.event[0], "here it was"));
    recorder_counts(w.r, &c);
    assert_int_equal(c.messages, f.messages);
    assert_int_equal(c.files, 1);
    assert_int_equal(c.lost_messages, 0);
    assert_true(c.healthy);
    assert_false(c.recording);
    world_end(&w);
}

struct seen {
    struct world *w;
    int64_t base;
    int joints, raw, bad, frames, parts, empty;
};

// Whether another one follows, then the bytes.
static bool is_part(const struct mcap_message *m, int i, uint64_t number)
{
    const unsigned char *bytes = m->data;
    uint64_t n = 0;

    memcpy(&n, bytes + 1, m->size > sizeof n ? sizeof n : 0);
    return m->size == 21 && bytes[0] == (i == 0 ? 3 : 0) && n == number;
}

static void see(struct seen *s, const char *topic, const struct mcap_message *m)
{
    uint64_t n = 0;

    memcpy(&n, m->data, m->size < sizeof n ? m->size : sizeof n);
    if (strcmp(topic, "/joint_states") == 0) {
        assert_int_equal(m->size, sizeof n);
        assert_int_equal(n, ++s->joints);
        assert_int_equal(m->sequence, s->joints);
        assert_int_equal(m->publish_ns, 7);
        assert_int_equal(m->log_ns, s->w->now + s->base);
    } else if (strcmp(topic, "/camera/front") == 0)
        s->frames += m->size == 9000 && n == 1 && m->publish_ns == m->log_ns;
    else if (strcmp(topic, "/camera/wrist/raw") == 0)
        s->raw += m->size == 5000 && n == 2;
    else if (strcmp(topic, "/undecodable/wrist") == 0)
        s->bad += m->size == 8 && n == 3;
    else if (strcmp(topic, "/parts/wrist") == 0)
        s->parts += is_part(m, s->parts, 4 + (uint64_t)s->parts);
    else if (strcmp(topic, "/parts/joint_states") == 0)
        s->empty += m->size == 1 && *(const unsigned char *)m->data == 0;
}

static void bytes_and_times_are_as_they_came(void **state)
{
    struct mcap_cursor *cursor;
    struct mcap_reader *reader;
    struct mcap_error err;
    struct mcap_message m;
    struct names names;
    struct world w;
    struct seen s = {.w = &w};
    struct tape_input empty = {.form = TAPE_PARTS};

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    empty.at_ns = w.now;
    s.base = w.r->base_ns;
    w.now += NS_PER_S;
    world_feed_joints(&w);
    world_feed_joints(&w);
    world_feed_frame(&w, 0, TAPE_COMPRESSED, 9000);
    world_feed_frame(&w, 1, TAPE_RAW, 5000);
    world_feed_frame(&w, 1, TAPE_UNDECODABLE, 8);
    world_feed_frame(&w, 1, TAPE_PARTS, 20);
    world_feed_frame(&w, 1, TAPE_PARTS, 20);
    tape_input(w.tape, &empty, "", 0);
    recorder_turn(w.r, w.now);
    stop(&w);
    world_names(w.dir, ".mcap", &names);
    assert_int_equal(names.n, 1);
    assert_int_equal(mcap_open(&reader, names.name[0], NULL, &err), 0);
    assert_int_equal(mcap_cursor_new(&cursor, reader, NULL, 0, MCAP_FILE_ORDER, 0, 0), 0);
    while (mcap_next(cursor, &m, &err) == 1)
        see(&s, mcap_channel_of(reader, m.channel)->topic, &m);
    assert_int_equal(s.joints, 2);
    assert_int_equal(s.frames, 1);
    assert_int_equal(s.raw, 1);
    assert_int_equal(s.bad, 1);
    assert_int_equal(s.parts, 2);
    assert_int_equal(s.empty, 1);
    mcap_cursor_free(cursor);
    mcap_close(reader);
    world_end(&w);
}

static const char *fact(const struct mcap_pair *p, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(p[i].key, key) == 0)
            return p[i].value;
    return NULL;
}

static void the_file_says_what_it_is(void **state)
{
    static const char *const key[] = {
        "version",        "exe_sha256",    "compiler",  "instance",   "run_id",
        "config_file",    "config",        "cpu",       "blas_core",  "mxcsr",
        "base_ns",        "joints",        "cameras",   "control_hz", "rows",
        "keyframe_build", "kernels",       "precision", "flags",      "config_sha256",
        "policy_sha256",  "weights_sha256"};
    const struct mcap_pair *pairs;
    struct mcap_reader *reader;
    struct mcap_error err;
    struct names names;
    struct world w;
    const char *name;
    char text[32];
    int n;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 0.1, 0);
    stop(&w);
    world_names(w.dir, ".mcap", &names);
    assert_int_equal(mcap_open(&reader, names.name[0], NULL, &err), 0);
    assert_string_equal(mcap_library(reader), "actd 1.2");
    assert_int_equal(mcap_metadata(reader), 1);
    assert_int_equal(mcap_metadata_at(reader, 0, &name, &pairs, &n, &err), 0);
    assert_string_equal(name, "actd");
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        assert_non_null(fact(pairs, n, key[i]));
    assert_string_equal(fact(pairs, n, "config"), "robot: x\n");
    assert_string_equal(fact(pairs, n, "joints"), "a\nb\nc\nd\ne\nf");
    assert_int_equal(strlen(fact(pairs, n, "exe_sha256")), 64);
    assert_string_equal(fact(pairs, n, "kernels"), "avx2");
    assert_string_equal(fact(pairs, n, "precision"), "float32");
    assert_string_equal(
        fact(pairs, n, "config_sha256"), // printf 'robot: x\n' | sha256sum
        "fb91e345c05c3fc086713e5ee3a5dbc6d97047483b93fa302d520beddacdb318");
    assert_non_null(strstr(fact(pairs, n, "flags"), "-ffp-contract=off"));
    assert_int_equal(strlen(fact(pairs, n, "run_id")), 32);
    assert_string_not_equal(fact(pairs, n, "cpu"), "");
    snprintf(text, sizeof text, "%lld", (long long)w.r->base_ns);
    assert_string_equal(fact(pairs, n, "base_ns"), text);
    mcap_close(reader);
    world_end(&w);
}

static void frames_can_be_left_out(void **state)
{
    struct world w;
    struct found f;

    (void)state;
    world_new(&w);
    w.cfg.frames = false;
    world_start(&w, NULL);
    world_run(&w, 1, 20);
    stop(&w);
    world_read_all(&w, &f);
    assert_int_equal(f.frames, 0);
    assert_int_equal(f.ticks, 200);
    assert_int_equal(f.inputs, 220);
    world_end(&w);
}

// ---- what a kill would lose ----------------------------------------------------------------------

static void half_a_second_is_on_disk_at_any_time(void **state)
{
    struct names names;
    struct world w;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    for (int i = 0; i < 100; i++) {
        struct found f = {0};

        world_run(&w, 0.035, 20); // no divisor of anything
        if (w.ticks < 90)
            continue;
        world_names(w.dir, ".part", &names);
        assert_int_equal(names.n, 1);
        assert_false(world_read(names.name[0], &f));
        assert_true(f.last_tick + 80 + 1 >= w.ticks); // 0.4 s at 200 Hz, and the turn
        assert_false(f.gap);
    }
    world_end(&w);
}

static void it_is_synced_once_a_second(void **state)
{
    struct world w;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    world_run(&w, 10, 20);
    assert_in_range(w.bad.syncs, 9, 11);
    world_end(&w);
}

// ---- segments ------------------------------------------------------------------------------------

static void check_segments(struct world *w, int least)
{
    struct names names;
    struct found all = {0};
    uint64_t next = 1;

    world_names(w->dir, ".mcap", &names);
    assert_true(names.n >= least);
    for (int i = 0; i < names.n; i++) {
        struct found f = {0};

        assert_true(world_read(names.name[i], &f));
        assert_int_equal(f.seats, 2);
        if (f.ticks > 0) {
            assert_int_equal(f.first_tick, next);
            assert_false(f.gap);
            next = f.last_tick + 1;
        }
        all.ticks += f.ticks;
        all.joints += f.joints;
        all.frames += f.frames;
    }
    assert_int_equal(all.ticks, w->ticks);
    assert_int_equal(all.joints, w->joints);
    assert_int_equal(all.frames, w->frames);
}

static void a_split_loses_nothing(void **state)
{
    struct tape_seat one = a_seat(1, "one"), two = a_seat(2, "two");
    uint32_t asked;
    struct world w;

    (void)state;
    world_new(&w);
    w.cfg.segment_bytes = 1u << 20;
    w.cfg.keyframe_ns = 1000 * NS_PER_S;
    world_start(&w, NULL);
    recorder_seat(w.r, &one, "camera: a\n");
    recorder_seat(w.r, &two, NULL);
    asked = atomic_load(&w.tape->loop_state_asked);
    world_run(&w, 10, 50);
    stop(&w);
    check_segments(&w, 9);
    assert_true(atomic_load(&w.tape->loop_state_asked) - asked >= 9);
    world_end(&w);
}

static void a_split_by_time_loses_nothing(void **state)
{
    struct tape_seat one = a_seat(1, "one"), two = a_seat(2, "two");
    struct world w;

    (void)state;
    world_new(&w);
    w.cfg.segment_ns = 2 * NS_PER_S;
    world_start(&w, NULL);
    recorder_seat(w.r, &one, "");
    recorder_seat(w.r, &two, "");
    recorder_seat(w.r, &two, ""); // said twice, there once
    world_run(&w, 10, 20);
    stop(&w);
    check_segments(&w, 4);
    world_end(&w);
}

static void states_are_asked_for_every_second(void **state)
{
    uint32_t asked;
    struct world w;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    asked = atomic_load(&w.tape->bus_state_asked);
    world_run(&w, 10, 0);
    assert_in_range(atomic_load(&w.tape->bus_state_asked) - asked, 9, 12);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_there_once),
        cmocka_unit_test(bytes_and_times_are_as_they_came),
        cmocka_unit_test(the_file_says_what_it_is),
        cmocka_unit_test(frames_can_be_left_out),
        cmocka_unit_test(half_a_second_is_on_disk_at_any_time),
        cmocka_unit_test(it_is_synced_once_a_second),
        cmocka_unit_test(a_split_loses_nothing),
        cmocka_unit_test(a_split_by_time_loses_nothing),
        cmocka_unit_test(states_are_asked_for_every_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
