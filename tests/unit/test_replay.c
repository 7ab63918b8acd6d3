// replay: what came out of a run comes out of its log, byte for byte, and whatever was changed in
// the log is found, in the tick and at the stage where it was changed.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "actd/v1/joint_command.pb-c.h"
#include "tests/unit/replay_world.h"
#include "tests/unit/slow.h"

#define TICKS 3000 // 6 s

static char dir[64];
static struct rw_log whole; // of the run that all tests share

static const char *file(const char *name)
{
    static char path[2][160];
    static int i;

    i = !i;
    snprintf(path[i], sizeof path[i], "%s/%s.mcap", dir, name);
    return path[i];
}

static int set_up(void **state)
{
    struct rw w;

    (void)state;
    snprintf(dir, sizeof dir, "/tmp/actd-replay.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    rw_init(&w);
    rw_run(&w, TICKS);
    whole = w.log;
    memset(&w.log, 0, sizeof w.log);
    rw_free(&w);
    return 0;
}

static int tear_down(void **state)
{
    char command[100];

    (void)state;
    rw_log_free(&whole);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static struct rw_log copy(void)
{
    struct rw_log out = {0};

    for (size_t i = 0; i < whole.n; i++) {
        rw_put(&out, whole.m[i].topic, 0, whole.m[i].bytes, whole.m[i].size);
        out.m[i].log_ns = whole.m[i].log_ns;
        out.m[i].publish_ns = whole.m[i].publish_ns;
    }
    return out;
}

static struct rw_replayed replay(const struct rw_log *log, const char *name,
                                 const struct replay_options *opt)
{
    static const struct replay_options none = {.quiet = true};
    struct replay_robot robot = rw_robot();

    rw_save(log, file(name), false, NULL);
    return rw_replay_file(file(name), &robot, opt ? opt : &none);
}

static void assert_equal_run(const struct rw_replayed *x)
{
    if (x->rc || x->r.first.any)
        print_message("rc %d %s; tick %llu, %s: %s\n", x->rc, x->err.text,
                      (unsigned long long)x->r.first.tick,
                      x->r.first.stage ? x->r.first.stage : "", x->r.first.text);
    assert_int_equal(x->rc, 0);
    assert_false(x->r.first.any);
    for (int i = 0; i < 4; i++)
        assert_int_equal(x->r.differing[i], 0);
    assert_int_equal(x->r.unreadable, 0);
}

// The tick in which joint sample `number` was seen first.
static uint64_t tick_of_sample(uint64_t number)
{
    struct tick_record t;

    for (size_t i = 0; i < whole.n; i++)
        if (strcmp(whole.m[i].topic, "/tick") == 0 &&
            record_tick_read(&t, whole.m[i].bytes, whole.m[i].size) == 0 &&
            t.in.joint_sample >= number)
            return t.in.tick;
    return 0;
}

// ---- equal -----------------------------------------------------------------------------------

static void the_run_is_worth_it(void **state)
{
    struct tick_record t;
    bool mode[LADDER_STATES] = {false}, no_room = false, limited = false;

    (void)state;
    for (size_t i = 0; i < whole.n; i++) {
        if (strcmp(whole.m[i].topic, "/tick") != 0)
            continue;
        assert_int_equal(record_tick_read(&t, whole.m[i].bytes, whole.m[i].size), 0);
        mode[t.mode] = true;
        no_room |= !t.in.room;
        for (int j = 0; j < RW_JOINTS; j++)
            limited |= t.joint[j].limit != GUARD_NONE;
    }
    assert_true(mode[LADDER_RUNNING] && mode[LADDER_READY] && mode[LADDER_APPROACH]);
    assert_true(no_room && limited);
    assert_true(rw_count(&whole, "/policy/chunk") > 20);
    assert_true(rw_count(&whole, "/command") > 2500);
    assert_true(rw_count(&whole, "/keyframe") >= 10);
    assert_true(rw_count(&whole, "/undecodable/joint_states") > 3);
}

static void a_run_is_equal_to_itself(void **state)
{
    struct rw_replayed x = replay(&whole, "whole", NULL);

    (void)state;
    assert_equal_run(&x);
    assert_int_equal(x.r.ticks, rw_count(&whole, "/tick"));
    assert_int_equal(x.r.inputs, rw_count(&whole, "/input"));
    assert_int_equal(x.r.chunks, rw_count(&whole, "/policy/chunk"));
    assert_int_equal(x.r.commands, rw_count(&whole, "/command"));
    assert_int_equal(x.r.ticks_skipped + x.r.inputs_skipped + x.r.commands_skipped, 0);
    assert_int_equal(x.r.chunks_taken + x.r.gaps + x.r.keyframes, 0);
    assert_true(x.r.bits);
    assert_int_equal(x.r.covered_ns / NS_PER_MS, (TICKS - 1) * RW_PERIOD / NS_PER_MS);
}

static void without_the_policy_chunks_are_taken(void **state)
{
    const struct replay_options opt = {.no_policy = true};
    struct rw_replayed x = replay(&whole, "nopolicy", &opt);

    (void)state;
    assert_equal_run(&x);
    assert_int_equal(x.r.chunks, 0);
    assert_int_equal(x.r.chunks_taken, rw_count(&whole, "/policy/chunk"));
    assert_int_equal(x.r.commands, rw_count(&whole, "/command"));
    print_message("%.0f times as fast as it was\n",
                  (double)x.r.covered_ns / (double)x.r.took_ns);
}

static size_t slurp(const char *path, unsigned char **out)
{
    FILE *f = fopen(path, "r");
    long n;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);
    *out = malloc((size_t)n + 1);
    assert_int_equal(fread(*out, 1, (size_t)n, f), n);
    fclose(f);
    return (size_t)n;
}

static void what_comes_out_is_a_log_again(void **state)
{
    char once[160], twice[160];
    struct replay_robot robot = rw_robot();
    struct replay_options opt = {.output = once};
    unsigned char *a, *b;
    struct rw_replayed x, y;

    (void)state;
    snprintf(once, sizeof once, "%s/once.mcap", dir);
    snprintf(twice, sizeof twice, "%s/twice.mcap", dir);
    x = replay(&whole, "source", &opt);
    assert_equal_run(&x);
    opt.output = twice;
    y = rw_replay_file(once, &robot, &opt);
    assert_equal_run(&y);
    assert_int_equal(y.r.ticks, x.r.ticks);
    assert_int_equal(y.r.inputs, x.r.inputs);
    assert_int_equal(y.r.chunks, x.r.chunks);
    assert_int_equal(y.r.commands, x.r.commands);
    size_t n = slurp(once, &a), m = slurp(twice, &b);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

// ---- changed ---------------------------------------------------------------------------------

static void a_flipped_joint_byte_is_found(void **state)
{
    const long which = 400;
    struct rw_message *m = rw_nth(&whole, "/joint_states", which);
    unsigned found = 0, in_tick = 0, silent = 0, in_bytes = 0;

    (void)state;
    for (size_t byte = 0; byte < m->size; byte += REPEATS(3, 7)) {
        struct rw_log log = copy();
        struct rw_replayed x;

        rw_nth(&log, "/joint_states", which)->bytes[byte] ^= 0x10;
        x = replay(&log, "flip", NULL);
        assert_int_equal(x.rc, 0);
        found += x.r.first.any;
        silent += !x.r.first.any;
        if (x.r.first.any && strcmp(x.r.first.stage, "tick") == 0)
            in_tick++;
        in_bytes += x.r.first.bytes_only;
        rw_log_free(&log);
    }
    // What nobody reads changes nothing: bits of a velocity that is not there, an effort.
    print_message("%u of %u found, %u of them by the tick, %u only by their bytes\n",
                  found, found + silent, in_tick, in_bytes);
    assert_int_equal(silent, 0);
    assert_true((found - in_bytes) * 10 >= found * 9);
    assert_true(in_tick > 0 && in_tick < found);
}

static void a_flipped_position_is_found_in_its_tick(void **state)
{
    struct rw_log log = copy();
    struct rw_message *m = rw_nth(&log, "/joint_states", 400), *in;
    struct tape_input i = {0};
    unsigned char *p = NULL;
    struct rw_replayed x;

    (void)state;
    for (long k = 0; (in = rw_nth(&log, "/input", k)); k++)
        if (in->log_ns == m->log_ns && record_input_read(&i, in->bytes, in->size) == 0 &&
            i.stream == 0)
            break;
    assert_true(i.joint_sample > 0);
    // A double field 2 of a joint: tag 0x11. Its lowest bits.
    for (size_t at = 0; at + 9 < m->size && !p; at++)
        if (memcmp(m->bytes + at, "shoulder", 8) == 0)
            p = memchr(m->bytes + at + 8, 0x11, 4);
    assert_non_null(p);
    p[1] ^= 1;
    x = replay(&log, "flip", NULL);
    assert_int_equal(x.rc, 0);
    assert_string_equal(x.r.first.stage, "tick");
    assert_int_equal(x.r.first.tick, tick_of_sample(i.joint_sample));
    assert_non_null(strstr(x.r.first.text, "joint 'shoulder': measured: then "));
    rw_log_free(&log);
}

static void a_changed_request_is_found(void **state)
{
    struct rw_log log = copy();
    unsigned char bytes[RECORD_TICK_MAX];
    struct rw_message *m = rw_nth(&log, "/tick", 2000);
    struct tick_record t;
    struct rw_replayed x;

    (void)state;
    assert_int_equal(record_tick_read(&t, m->bytes, m->size), 0);
    t.in.requests |= BOARD_STOP;
    m->size = record_tick(&t, bytes, sizeof bytes);
    free(m->bytes);
    m->bytes = malloc(m->size);
    memcpy(m->bytes, bytes, m->size);
    x = replay(&log, "flip", NULL);
    assert_string_equal(x.r.first.stage, "tick");
    assert_int_equal(x.r.first.tick, t.in.tick);
    assert_true(x.r.differing[2] > 100);
    rw_log_free(&log);
}

// Whatever came out of a tick and was changed is found there; what went in is found if anything
// hung on it, and the loop never goes another way unseen.
static void every_flip_in_a_tick_is_found(void **state)
{
    const long which = 2000;
    struct rw_message *m = rw_nth(&whole, "/tick", which);
    static struct tick_record was, is;
    unsigned silent = 0, bad = 0, found = 0;

    (void)state;
    assert_int_equal(record_tick_read(&was, m->bytes, m->size), 0);
    for (size_t byte = 0; byte < m->size; byte += REPEATS(3, 10)) {
        struct rw_log log = copy();
        struct rw_message *f = rw_nth(&log, "/tick", which);
        struct rw_replayed x;

        f->bytes[byte] ^= 2;
        x = replay(&log, "flip", NULL);
        assert_int_equal(x.rc, 0);
        if (record_tick_read(&is, f->bytes, f->size) != 0) {
            assert_true(x.r.unreadable > 0);
            bad++;
        } else if (x.r.first.any) {
            assert_true(x.r.first.tick >= was.in.tick - 1);
            found++;
        } else { // of what came out nothing is changed
            silent++;
            is.in = was.in;
            assert_memory_equal(&is, &was, sizeof is);
        }
        rw_log_free(&log);
    }
    print_message("%u found, %u not readable, %u inputs on which nothing hung\n", found,
                  bad, silent);
    assert_true(found > 10 * silent);
}

static void an_untrue_sample_is_found(void **state)
{
    struct rw_log log = copy();
    unsigned char bytes[RECORD_TICK_MAX];
    struct rw_message *m = rw_nth(&log, "/tick", 2000);
    struct tick_record t;
    struct rw_replayed x;

    (void)state;
    assert_int_equal(record_tick_read(&t, m->bytes, m->size), 0);
    t.in.joint_sample += 100000;
    free(m->bytes);
    m->size = record_tick(&t, bytes, sizeof bytes);
    m->bytes = malloc(m->size);
    memcpy(m->bytes, bytes, m->size);
    x = replay(&log, "flip", NULL);
    assert_string_equal(x.r.first.stage, "tick");
    assert_int_equal(x.r.first.tick, t.in.tick);
    assert_non_null(strstr(x.r.first.text, "joint_sample: then "));
    assert_int_equal(x.r.keyframes, 1); // and it goes on
    assert_int_equal(x.r.inputs, rw_count(&whole, "/input"));
    rw_log_free(&log);
}

static void a_changed_row_is_found(void **state)
{
    const struct replay_options taken = {.no_policy = true};
    struct rw_log log = copy();
    unsigned char bytes[8192];
    struct rw_message *m = rw_nth(&log, "/policy/chunk", 20);
    struct tape_chunk c;
    float *row;
    struct rw_replayed x;

    (void)state;
    assert_int_equal(record_chunk_read(&c, &row, m->bytes, m->size), 0);
    row[10 * RW_JOINTS + 1] = nextafterf(row[10 * RW_JOINTS + 1], 9);
    free(m->bytes);
    m->size = record_chunk(&c, row, bytes, sizeof bytes);
    m->bytes = malloc(m->size);
    memcpy(m->bytes, bytes, m->size);
    free(row);
    x = replay(&log, "flip", NULL);
    assert_string_equal(x.r.first.stage, "chunk");
    assert_int_equal(x.r.differing[1], 1);
    assert_int_equal(x.r.differing[2], 0); // what came out went on
    assert_non_null(strstr(x.r.first.text, "row 10, joint 'elbow': then "));
    x = replay(&log, "flip", &taken);
    assert_string_equal(x.r.first.stage, "tick");
    assert_non_null(strstr(x.r.first.text, "joint 'elbow': target"));
    rw_log_free(&log);
}

static void every_flip_in_a_command_is_found(void **state)
{
    struct rw_message *m = rw_nth(&whole, "/command", 1500);
    Actd__V1__JointCommand *c = actd__v1__joint_command__unpack(NULL, m->size, m->bytes);
    uint64_t tick = c->tick;
    unsigned exact = 0, all = 0;

    (void)state;
    actd__v1__joint_command__free_unpacked(c, NULL);
    // After the stamp, which only the machine's wall clock knows: 2 bytes of head, 12 of it.
    for (size_t byte = 14; byte < m->size; byte += REPEATS(5, 11), all++) {
        struct rw_log log = copy();
        struct rw_replayed x;

        rw_nth(&log, "/command", 1500)->bytes[byte] ^= 1;
        x = replay(&log, "flip", NULL);
        assert_int_equal(x.rc, 0);
        assert_true(x.r.first.any);
        assert_string_equal(x.r.first.stage, "command");
        exact += x.r.first.tick == tick;
        rw_log_free(&log);
    }
    assert_true(exact * 10 >= all * 9);
}

static void a_changed_input_record_is_found(void **state)
{
    struct rw_log log = copy();
    struct rw_message *m = rw_nth(&log, "/input", 700);
    unsigned char bytes[RECORD_INPUT_MAX];
    struct tape_input in;
    struct rw_replayed x;

    (void)state;
    assert_int_equal(record_input_read(&in, m->bytes, m->size), 0);
    in.capture_ns += 1;
    free(m->bytes);
    m->size = record_input(&in, bytes, sizeof bytes);
    m->bytes = malloc(m->size);
    memcpy(m->bytes, bytes, m->size);
    x = replay(&log, "flip", NULL);
    assert_string_equal(x.r.first.stage, "input");
    assert_int_equal(x.r.differing[0], 1);
    assert_non_null(strstr(x.r.first.text, "capture_ns"));
    rw_log_free(&log);
}

// ---- incomplete ------------------------------------------------------------------------------

static void drop_before(struct rw_log *log, ns_t at)
{
    for (size_t i = log->n; i-- > 0;)
        if (log->m[i].log_ns < (uint64_t)(at + RW_BASE))
            rw_remove(log, i);
}

static void a_log_that_begins_late_begins_with_a_state(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_before(&log, RW_START + 1100 * NS_PER_MS);
    x = replay(&log, "late", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.keyframes, 1);
    assert_true(x.r.ticks_skipped > 0 && x.r.ticks_skipped < 500);
    assert_int_equal(x.r.ticks + x.r.ticks_skipped, rw_count(&log, "/tick"));
    assert_true(x.r.ticks > 1900 && x.r.commands > 1800);
    assert_true(x.r.chunks > 10);
    rw_log_free(&log);
}

static void drop_some(struct rw_log *log, const char *topic, long from, long n)
{
    for (; n > 0; n--)
        rw_remove(log, (size_t)(rw_nth(log, topic, from) - log->m));
}

static void after_a_gap_it_goes_on(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_some(&log, "/tick", 1600, 40);
    x = replay(&log, "gap", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps, 1);
    assert_int_equal(x.r.keyframes, 1);
    assert_true(x.r.ticks_skipped < 500);
    assert_true(x.r.commands_skipped > 30);
    rw_log_free(&log);
}

static void a_lost_joint_message_is_a_gap(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_some(&log, "/joint_states", 300, 1);
    x = replay(&log, "gap", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps, 1);
    assert_int_equal(x.r.keyframes, 1);
    assert_true(x.r.inputs_skipped > 0 && x.r.inputs_skipped < 400);
    rw_log_free(&log);
}

static void a_lost_input_record_is_a_gap(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_some(&log, "/input", 300, 3);
    x = replay(&log, "gap", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps, 1);
    rw_log_free(&log);
}

static void without_frames_chunks_are_taken(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_some(&log, "/camera/front/raw", 0, (long)rw_count(&log, "/camera/front/raw"));
    x = replay(&log, "frameless", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps, 0);
    assert_int_equal(x.r.chunks, 0);
    assert_int_equal(x.r.ticks, rw_count(&whole, "/tick"));
    rw_log_free(&log);
}

static void a_lost_chunk_is_a_gap(void **state)
{
    struct rw_log log = copy();
    struct rw_replayed x;

    (void)state;
    drop_some(&log, "/policy/chunk", 12, 1);
    x = replay(&log, "gap", NULL);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps, 1);
    assert_int_equal(x.r.keyframes, 1);
    rw_log_free(&log);
}

static void a_cut_file_is_replayed_as_far_as_it_goes(void **state)
{
    unsigned char *bytes;
    size_t n;
    struct replay_robot robot = rw_robot();
    const struct replay_options opt = {0};

    (void)state;
    rw_save(&whole, file("cut"), false, NULL);
    n = slurp(file("cut"), &bytes);
    free(bytes);
    for (size_t left = n * 3 / 5; left > 1000; left /= 2) {
        struct rw_replayed x;

        assert_int_equal(truncate(file("cut"), (off_t)left), 0);
        x = rw_replay_file(file("cut"), &robot, &opt);
        assert_int_equal(x.rc, 0);
        assert_false(x.r.first.any);
        assert_true(left < n / 2 || x.r.ticks > 500);
    }
}

static void segments_are_one_run(void **state)
{
    struct rw_log half[2] = {{0}, {0}};
    char path[2][160];
    const char *both[] = {path[1], path[0]};
    struct replay_robot robot = rw_robot();
    const struct replay_options opt = {0};
    struct logbook *book;
    struct mcap_error e;
    struct rw_replayed x = {0};

    (void)state;
    for (size_t i = 0; i < whole.n; i++) {
        struct rw_log *to =
            &half[whole.m[i].log_ns > (uint64_t)(RW_START + RW_BASE) + 3100000000];

        rw_put(to, whole.m[i].topic, 0, whole.m[i].bytes, whole.m[i].size);
        to->m[to->n - 1].log_ns = to->m[to->n - 1].publish_ns = whole.m[i].log_ns;
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/segment%d.mcap", dir, i);
        rw_save(&half[i], path[i], false, NULL);
        rw_log_free(&half[i]);
    }
    assert_int_equal(logbook_open(&book, both, 2, &e), 0);
    x.rc = replay_run_robot(book, &robot, &opt, &x.r, &x.err);
    assert_equal_run(&x);
    assert_int_equal(x.r.gaps + x.r.ticks_skipped + x.r.inputs_skipped, 0);
    assert_int_equal(x.r.ticks, rw_count(&whole, "/tick"));
    assert_int_equal(x.r.chunks, rw_count(&whole, "/policy/chunk"));
    assert_int_equal(x.r.commands, rw_count(&whole, "/command"));
    logbook_close(book);
}

// ---- what if ---------------------------------------------------------------------------------

static int think_short(void *arg, const struct tape_chunk *request,
                       const struct policy_image *image,
                       const struct joint_sample *joints, float *row,
                       struct config_error *err)
{
    (void)arg;
    (void)image;
    (void)err;
    if (request->number % 4 == 0)
        return -ENOENT;
    for (int k = 0; k < 2 * RW_ROWS; k++)
        for (int j = 0; j < RW_JOINTS; j++)
            row[k * RW_JOINTS + j] = (float)(joints->pos[j] + 0.001 * k);
    return 2 * RW_ROWS;
}

static void moving(void *arg, const struct tick_record *then,
                   const struct tick_record *now)
{
    (void)then;
    *(unsigned *)arg += now->mode == LADDER_RUNNING && now->chunk_row > 15;
}

// Twice the rows at twice the rate (as recorded none gets beyond row 12); of every fourth chunk there is only what was recorded.
static void a_policy_of_another_shape(void **state)
{
    unsigned far = 0;
    const struct replay_options opt = {
        .policy_directory = "x", .arg = &far, .tick = moving};
    struct replay_robot robot = rw_robot();
    struct rw_replayed x;

    (void)state;
    robot.rows = robot.loop.chunks.rows = robot.think_rows = 2 * RW_ROWS;
    robot.think_step_ns = 10 * NS_PER_MS;
    robot.loop.chunks.mode = CHUNK_LATEST_ONLY;
    robot.think = think_short;
    rw_save(&whole, file("shape"), false, NULL);
    x = rw_replay_file(file("shape"), &robot, &opt);
    assert_equal_run(&x);
    assert_int_equal(x.r.ticks, rw_count(&whole, "/tick"));
    assert_int_equal(x.r.chunks + x.r.chunks_taken, rw_count(&whole, "/policy/chunk"));
    assert_true(x.r.chunks > 2 * x.r.chunks_taken && x.r.chunks_taken > 3);
    assert_true(far > 0);
}

// ---- others ----------------------------------------------------------------------------------

static void another_robot_is_refused(void **state)
{
    struct replay_robot robot = rw_robot();
    const struct replay_options opt = {0};
    struct rw_replayed x;

    (void)state;
    robot.loop.joints = robot.loop.limits.n = robot.intake.joints = 2;
    robot.loop.chunks.joints = 2;
    rw_save(&whole, file("other"), false, NULL);
    x = rw_replay_file(file("other"), &robot, &opt);
    assert_int_equal(x.rc, -EINVAL);
    assert_non_null(strstr(x.err.text, "3 joints"));
}

// Bytes anywhere in anything: an end, no crash, and no loop.
static void noise_is_survived(void **state)
{
    uint64_t random = 88172645463325252u;

    (void)state;
    for (int i = 0; i < REPEATS(60, 20); i++) {
        struct rw_log log = copy();
        char out[160];
        const struct replay_options opt = {.output = i % 4 == 0 ? out : NULL};
        struct rw_replayed x;

        snprintf(out, sizeof out, "%s/noise.out.mcap", dir);
        for (int k = 0; k < 200; k++) {
            struct rw_message *m;

            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            m = &log.m[random % log.n];
            if (m->size > 0)
                m->bytes[(random >> 20) % m->size] ^=
                    (unsigned char)(1u << ((random >> 50) & 7));
        }
        x = replay(&log, "noise", &opt);
        assert_true(x.rc == 0 || x.rc == -EINVAL);
        assert_true(x.rc != 0 || x.r.first.any);
        rw_log_free(&log);
    }
}

static bool stop_at_once(void *arg, ns_t covered_ns)
{
    *(ns_t *)arg = covered_ns;
    return false;
}

static void it_can_be_stopped(void **state)
{
    ns_t covered_ns = 0;
    char out[160];
    struct replay_options opt = {
        .arg = &covered_ns, .going = stop_at_once, .output = out};
    struct rw_replayed x;

    (void)state;
    snprintf(out, sizeof out, "%s/stopped.mcap", dir);
    x = replay(&whole, "stop", &opt);
    assert_int_equal(x.rc, -ECANCELED);
    assert_true(covered_ns > 0);
    assert_int_equal(access(out, F_OK), -1); // nor half a file
    snprintf(out, sizeof out, "%s/stopped.mcap.part", dir);
    assert_int_equal(access(out, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_run_is_worth_it),
        cmocka_unit_test(a_run_is_equal_to_itself),
        cmocka_unit_test(without_the_policy_chunks_are_taken),
        cmocka_unit_test(what_comes_out_is_a_log_again),
        cmocka_unit_test(a_flipped_joint_byte_is_found),
        cmocka_unit_test(a_flipped_position_is_found_in_its_tick),
        cmocka_unit_test(a_changed_request_is_found),
        cmocka_unit_test(every_flip_in_a_tick_is_found),
        cmocka_unit_test(an_untrue_sample_is_found),
        cmocka_unit_test(a_changed_row_is_found),
        cmocka_unit_test(every_flip_in_a_command_is_found),
        cmocka_unit_test(a_changed_input_record_is_found),
        cmocka_unit_test(a_log_that_begins_late_begins_with_a_state),
        cmocka_unit_test(after_a_gap_it_goes_on),
        cmocka_unit_test(a_lost_joint_message_is_a_gap),
        cmocka_unit_test(a_lost_input_record_is_a_gap),
        cmocka_unit_test(without_frames_chunks_are_taken),
        cmocka_unit_test(a_lost_chunk_is_a_gap),
        cmocka_unit_test(a_cut_file_is_replayed_as_far_as_it_goes),
        cmocka_unit_test(segments_are_one_run),
        cmocka_unit_test(a_policy_of_another_shape),
        cmocka_unit_test(another_robot_is_refused),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(it_can_be_stopped),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
