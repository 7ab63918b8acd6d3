// The recorder in the hand of an operator, and what its files are called.
#include "tests/unit/recorder_world.h"

static void stop(struct world *w)
{
    recorder_finish(w->r, w->now);
}

// ---- by hand -------------------------------------------------------------------------------------

static void by_hand(void **state)
{
    struct recorder_counts c;
    struct world w;
    struct found f;
    char text[256];

    (void)state;
    world_new(&w);
    w.cfg.mode = RECORDER_OFF;
    world_start(&w, NULL);
    world_run(&w, 1, 20);
    assert_int_equal(world_count(w.dir, ""), 0);
    assert_int_not_equal(recorder_mark(w.r, "x", text), 0);
    assert_int_equal(recorder_end(w.r, text), -EALREADY);
    assert_int_equal(recorder_begin(w.r, text), 0);
    assert_int_equal(recorder_begin(w.r, text), -EALREADY);
    recorder_turn(w.r, w.now); // the tape is on from here
    world_run(&w, 1, 20);
    assert_int_equal(recorder_mark(w.r, "the cup fell", text), 0);
    world_run(&w, 1, 20);
    recorder_counts(w.r, &c);
    assert_true(c.recording);
    assert_int_equal(recorder_end(w.r, text), 0);
    world_run(&w, 2, 20);
    assert_int_equal(world_count(w.dir, ".part"), 0);
    assert_int_equal(world_read_all(&w, &f), 1);
    assert_in_range(f.ticks, 400, 401);
    assert_int_equal(f.first_tick, 201);
    assert_non_null(strstr(f.event[0], "the cup fell"));
    assert_int_equal(recorder_begin(w.r, text), 0);
    world_run(&w, 1, 0);
    stop(&w);
    assert_int_equal(world_read_all(&w, &f), 2);
    assert_false(tape_on(w.tape));
    world_end(&w);
}

static void always_is_always(void **state)
{
    struct world w;
    char text[256];

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    assert_int_equal(recorder_begin(w.r, text), -EALREADY);
    assert_int_equal(recorder_end(w.r, text), -EALREADY);
    assert_non_null(strstr(text, "record.mode"));
    world_end(&w);
}

// By the daemon that ran before, in the same second.
static void a_name_that_is_taken_costs_a_number(void **state)
{
    struct recorder_counts c;
    struct names names;
    struct world w;
    FILE *f;

    (void)state;
    world_new(&w);
    world_start(&w, NULL);
    for (int i = 1; i <= 3; i++) {
        char name[RECORDER_NAME], path[400];

        // Of the very second of the first turn.
        recorder_name(name, "arm", w.now + 5 * NS_PER_MS + w.r->base_ns, (unsigned)i);
        snprintf(path, sizeof path, "%s/%.*s%s", w.dir, (int)strlen(name) - 5, name,
                 i == 1   ? ".mcap"
                 : i == 2 ? "-fault.mcap"
                          : ".mcap.part");
        f = fopen(path, "w");
        assert_non_null(f);
        fclose(f);
    }
    world_run(&w, 0.1, 0);
    recorder_counts(w.r, &c);
    assert_true(c.healthy && c.recording);
    world_names(w.dir, "-0004.mcap.part", &names);
    assert_int_equal(names.n, 1);
    world_end(&w);
}

// ---- names ---------------------------------------------------------------------------------------

static void names_are_safe(void **state)
{
    char name[128];

    (void)state;
    recorder_instance_name(name, sizeof name, "../../etc/x y\n");
    assert_string_equal(name, "_._.._etc_x_y_");
    recorder_instance_name(name, sizeof name, "");
    assert_string_equal(name, "actd");
    recorder_instance_name(name, 5, "left-arm");
    assert_string_equal(name, "left");
}

static void ours_are_known_by_their_names(void **state)
{
    static const struct {
        const char *name;
        enum recorder_name_kind kind;
    } t[] = {{"arm-20261129T201500Z-0001.mcap", NAME_WHOLE},
             {"arm-20261129T201500Z-12345.mcap", NAME_WHOLE},
             {"arm-20261129T201500Z-0001-fault.mcap", NAME_FAULT},
             {"arm-20261129T201500Z-0001.mcap.part", NAME_PART},
             {"arm-20261129T201500Z-0001-fault.mcap.part", NAME_PART},
             {"arm-20261129T201500Z-001.mcap", NAME_OTHER},
             {"arm-20261129T201500Z-0001-mine.mcap", NAME_OTHER},
             {"arm-20261129T201500Z-0001.mcap.zip", NAME_OTHER},
             {"arm-2-20261129T201500Z-0001.mcap", NAME_OTHER},
             {"arm2-20261129T201500Z-0001.mcap", NAME_OTHER},
             {"arm-20261129T201500-0001.mcap", NAME_OTHER},
             {"arm", NAME_OTHER},
             {"notes.mcap", NAME_OTHER}};
    char name[RECORDER_NAME], fault[RECORDER_NAME];

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        assert_int_equal(recorder_name_kind(t[i].name, "arm"), t[i].kind);
    assert_int_equal(recorder_name(name, "arm", INT64_C(1795983300) * NS_PER_S, 7), 0);
    assert_string_equal(name, "arm-20261129T201500Z-0007.mcap");
    recorder_name_fault(fault, name);
    assert_string_equal(fault, "arm-20261129T201500Z-0007-fault.mcap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(always_is_always),
        cmocka_unit_test(a_name_that_is_taken_costs_a_number),
        cmocka_unit_test(names_are_safe),
        cmocka_unit_test(ours_are_known_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
