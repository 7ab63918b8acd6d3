// report: a page of a run that has a hold, a stop, hostile names and a gap in it; of an hour; and of
// files that hardly hold anything.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "daemon/report.h"
#include "tests/unit/run_log.h"

static char dir[64], log_path[128], page_path[128];
static struct mcap_error err;

#define JOINTS 3
static const char *const joint_name[JOINTS] = {"pan", "lift", "grip"};

static const char config[] =
    "instance: left\n"
    "runtime: /tmp\n"
    "policy: {directory: /}\n"
    "control: {rate_hz: 100}\n"
    "joint_state: {rate_hz: 100}\n"
    "cameras:\n"
    "  front: {key: observation.images.front, rate_hz: 25, primary: true}\n"
    "  wrist: {key: observation.images.wrist, rate_hz: 25}\n"
    "joints:\n"
    "  pan: {state: pan, action: pan, position: [-1.5, 1.5], velocity: 3, acceleration: 40}\n"
    "  lift: {state: lift, action: lift, position: [-1.25, 1.75], velocity: 3, acceleration: 40}\n"
    "  grip: {state: grip, action: grip, position: [0, 1], velocity: 3, acceleration: 40}\n";

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/actd-report-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(log_path, sizeof log_path, "%s/log.mcap", dir);
    snprintf(page_path, sizeof page_path, "%s/page.html", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(log_path);
    unlink(page_path);
    assert_int_equal(rmdir(dir), 0);
    return 0;
}

// ---- a run that never was --------------------------------------------------------------------

static void open_run(struct run_log *l)
{
    const struct mcap_pair pair[] = {{"version", "1.2-test"},
                                     {"instance", "left<arm>"},
                                     {"run_id", "run-1"},
                                     {"config_file", "robot.yaml"},
                                     {"config", config},
                                     {"cpu", "a \"processor\" & more"},
                                     {"kernels", "avx512"},
                                     {"blas_core", "Haswell"},
                                     {"base_ns", "1700000000000000000"},
                                     {"joints", "pan\nlift\ngrip\n"},
                                     {"cameras", "front\nwrist\n"},
                                     {"control_hz", "100"}};
    run_log_open(l, log_path, "actd", pair, sizeof pair / sizeof *pair);
}

static enum ladder_state mode_at(double s, enum ladder_reason *reason)
{
    *reason = REASON_NONE;
    if (s < 0.5)
        return *reason = REASON_JOINTS_MISSING, LADDER_WAITING;
    if (s < 1)
        return LADDER_READY;
    if (s < 2)
        return LADDER_APPROACH;
    if (s >= 5 && s < 5.3)
        return *reason = REASON_CAMERA_STALE, LADDER_HOLD;
    if (s >= 9 && s < 9.4)
        return *reason = REASON_JOINTS_STALE, LADDER_STOPPING;
    if (s >= 9.4)
        return *reason = REASON_JOINTS_STALE, LADDER_STOPPED;
    return LADDER_RUNNING;
}

static double wave(double s, int joint)
{
    return 0.4 * sin(s * (1 + joint * 0.37)) + 0.3 * joint;
}

static void put_tick(struct run_log *l, uint64_t tick, ns_t now, uint64_t chunks,
                     bool took)
{
    static struct tick_record r;
    uint8_t out[RECORD_TICK_MAX];
    double s = (double)now / 1e9;
    memset(&r, 0, sizeof r);
    r.joints = JOINTS;
    r.cameras = 2;
    r.in.tick = tick;
    r.in.now_ns = now;
    r.in.lateness_ns = (ns_t)(20000 + tick * 7919 % 40000) + (tick == 700 ? 3000000 : 0);
    r.in.last_work_ns = tick == 0 ? -1 : (ns_t)(80000 + tick * 104729 % 60000);
    r.in.made_ns = now + 60000;
    r.in.room = true;
    r.in.started = true;
    r.in.joint_sample = tick + 1;
    r.in.joint_sample_new = true;
    r.in.camera[0].received_ns = now - (ns_t)(tick % 4) * 10 * NS_PER_MS;
    r.in.camera[1].received_ns = now - (ns_t)(tick % 4) * 10 * NS_PER_MS - 3 * NS_PER_MS;
    r.in.chunks_before = chunks - took;
    r.in.chunks_taken = took;
    r.mode = mode_at(s, &r.reason);
    r.culprit = r.reason == REASON_CAMERA_STALE ? 1 : -1;
    r.published = true;
    r.sequence = tick + 1;
    for (int j = 0; j < JOINTS; j++) {
        struct tick_joint *k = &r.joint[j];
        bool runs = r.mode == LADDER_RUNNING;
        k->measured = wave(s - 0.03, j) + 0.002 * sin((double)tick * 1.7);
        k->target = runs ? wave(s, j) + (j == 1 && tick == 811 ? 0.45 : 0) : (double)NAN;
        k->wanted = wave(s, j);
        k->commanded = wave(s, j);
        k->commanded_vel = 0.4 * cos(s * (1 + j * 0.37));
        k->seam = j == 0 && took ? 0.0125 : 0;
        k->limit = j == 1 && tick >= 811 && tick < 815 ? GUARD_ACCELERATION : GUARD_NONE;
    }
    size_t n = record_tick(&r, out, sizeof out);
    assert_true(n > 0);
    run_log_put(l, "/tick", "actd.v1.Tick", now, out, n);
}

static void put_input(struct run_log *l, uint64_t number, int stream, ns_t at,
                      uint64_t sample, enum tape_outcome outcome)
{
    struct tape_input in = {.number = number,
                            .at_ns = at,
                            .kind = TAPE_MESSAGE,
                            .stream = stream,
                            .outcome = outcome,
                            .verdict =
                                outcome == TAPE_REFUSED ? CODEC_NOT_FINITE : CODEC_OK,
                            .joint_sample = sample,
                            .capture_ns = at - 2 * NS_PER_MS,
                            .bytes = 100,
                            .kept = true};
    uint8_t out[RECORD_INPUT_MAX];
    size_t n = record_input(&in, out, sizeof out);
    assert_true(n > 0);
    run_log_put(l, "/input", "actd.v1.Input", at, out, n);
}

static void put_chunk(struct run_log *l, uint64_t number, ns_t ready)
{
    static float row[8 * JOINTS];
    static uint8_t out[4096];
    struct tape_chunk c = {.number = number,
                           .id = number,
                           .generation = 1,
                           .rows = 8,
                           .joints = JOINTS,
                           .anchor_ns = ready - 45 * NS_PER_MS,
                           .oldest_ns = ready - 47 * NS_PER_MS,
                           .ready_ns = ready,
                           .began_ns = ready - 30 * NS_PER_MS,
                           .step_ns = 40 * NS_PER_MS,
                           .joint_sample = 1};
    size_t n = record_chunk(&c, row, out, sizeof out);
    assert_true(n > 0);
    run_log_put(l, "/policy/chunk", "actd.v1.Chunk", ready, out, n);
}

static void put_seat(struct run_log *l)
{
    static struct tape_seat s = {.generation = 1, .threads = 1};
    static uint8_t out[16384];
    snprintf(s.name, sizeof s.name, "reach & <grab>");
    snprintf(s.digest, sizeof s.digest, "0123456789abcdef");
    snprintf(s.directory, sizeof s.directory, "/robots/policies/reach");
    size_t n = record_seat(&s, "rate_hz: 25\n", 12, out, sizeof out);
    assert_true(n > 0);
    run_log_put(l, "/policy/seat", "actd.v1.Seat", 0, out, n);
}

static void put_frame(struct run_log *l, const char *topic, bool raw, int phase, ns_t at)
{
    uint8_t *data;
    size_t n = run_log_frame(320, 240, phase, raw, at, &data);
    run_log_put(l, topic, raw ? "foxglove.RawImage" : "foxglove.CompressedImage", at,
                data, n);
    free(data);
}

// Ticks at 100 Hz from 0 on, as a run of `seconds`; frames every `frame_every` ticks, 0 = never.
static void put_run(struct run_log *l, double seconds, int frame_every)
{
    uint64_t input = 0, chunks = 0, ticks = (uint64_t)(seconds * 100);
    put_seat(l);
    for (uint64_t t = 0; t < ticks; t++) {
        ns_t now = (ns_t)t * 10 * NS_PER_MS;
        bool took = t % 32 == 20;
        if (t >= 600 && t < 603) // skipped: the tick after them is late by as much
            continue;
        put_input(l, ++input, 0, now, t + 1, TAPE_ACCEPTED);
        if (t % 250 == 99)
            put_input(l, ++input, 0, now + 1, 0, TAPE_REFUSED);
        if (took) {
            put_chunk(l, ++chunks, now - 4 * NS_PER_MS);
        }
        put_tick(l, t, now + 100000, chunks, took);
        if (frame_every && t % (uint64_t)frame_every == 0) {
            put_frame(l, "/camera/front", false, (int)t, now);
            put_frame(l, "/camera/wrist/raw", true, (int)t, now);
        }
    }
}

static char *write_report(const struct replay_result *verdict, size_t *n)
{
    struct logbook *book;
    const char *path = log_path;
    assert_int_equal(logbook_open(&book, &path, 1, &err), 0);
    int rc = report_write(book, page_path, verdict, &err);
    if (rc)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
    logbook_close(book);
    return run_log_slurp(page_path, n);
}

static int count(const char *page, const char *what)
{
    int n = 0;
    for (const char *p = page; (p = strstr(p, what)) != NULL; p += strlen(what))
        n++;
    return n;
}

#define HAS(page, what)                                   \
    do {                                                  \
        if (!strstr(page, what))                          \
            print_message("not in the page: %s\n", what); \
        assert_non_null(strstr(page, what));              \
    } while (0)

// ---- the tests -------------------------------------------------------------------------------

static void usual_run(void)
{
    struct run_log l;
    open_run(&l);
    put_run(&l, 12, 20);
    run_log_event(&l, 1 * NS_PER_S, TAPE_LEVEL_INFO, "actd", "READY -> APPROACH");
    run_log_event(&l, 5 * NS_PER_S, TAPE_LEVEL_WARNING, "actd",
                  "RUNNING -> HOLD (CAMERA_STALE)");
    run_log_event(&l, 6 * NS_PER_S, TAPE_LEVEL_INFO, "mark",
                  "</td><script>alert(1)</script>");
    run_log_event(&l, 9 * NS_PER_S, TAPE_LEVEL_ERROR, "fault",
                  "JOINTS_STALE: no joint state");
    run_log_close(&l);
}

static void a_page_has_it_all(void **state)
{
    (void)state;
    size_t n;
    usual_run();
    char *page = write_report(NULL, &n);
    HAS(page, "<h1>left&lt;arm&gt; driven by reach &amp; &lt;grab&gt;</h1>");
    HAS(page, "2023-11-14 22:13:20 UTC, 12.0 s, actd 1.2-test");
    HAS(page, "0123456789abcdef");
    HAS(page, "a &quot;processor&quot; &amp; more");
    // The ladder: who, when, how long.
    HAS(page, "CAMERA_STALE, camera wrist");
    HAS(page,
        "<td class=\"n\">5.000 s</td><td class=\"n\">0.300 s</td><td class=\"warn\">HOLD");
    HAS(page, "<td class=\"bad\">STOPPED");
    assert_int_equal(count(page, "<rect class=\"m6\""), 1 + 1); // band and key
    // Joints.
    HAS(page, "limits -1.25 … 1.75 rad, 3 rad/s");
    HAS(page, "limited by acceleration in 4 ticks");
    HAS(page, "largest seam 0.0125 rad");
    assert_int_equal(count(page, "no limit acted"), 2);
    // Events: escaped, errors told from warnings.
    HAS(page, "&lt;/td&gt;&lt;script&gt;alert(1)");
    HAS(page, "4 lines, 1 warning, 1 error");
    HAS(page, "<tr class=\"e\">");
    assert_null(strstr(page, "<script>alert"));
    // Cameras: JPEG and raw alike.
    assert_int_equal(count(page, "src=\"data:image/jpeg;base64,/9j/"), 2 * 5);
    assert_int_equal(count(page, "no frame"), 0);
    HAS(page, "STOPPING, JOINTS_STALE");
    // Losses: 5 refused, 3 ticks skipped.
    HAS(page, "<td class=\"n bad\">5</td>");
    HAS(page, "5 not finite");
    // Nothing from elsewhere.
    assert_null(strstr(page, "http"));
    assert_null(strstr(page, "A replay gives"));
    free(page);
}

static void distributions_are_true(void **state)
{
    (void)state;
    size_t n;
    usual_run();
    char *page = write_report(NULL, &n);
    // Frame to chunk in use: anchor 45 ms before it is ready, which is 4.1 ms before the tick.
    const char *p = strstr(page, "<h3>Frame to chunk in use</h3>");
    assert_non_null(p);
    double worst = 0;
    p = strstr(p, "worst ");
    assert_non_null(p);
    assert_int_equal(sscanf(p, "worst %lf ms", &worst), 1);
    assert_true(worst > 49 && worst < 49.2);
    p = strstr(page, "<h3>Inference</h3>");
    assert_non_null(p);
    HAS(p, "worst 30.0 ms");
    // Captured 2 ms before it came, 0.1 ms before the tick.
    p = strstr(page, "<h3>Age of joint states</h3>");
    assert_non_null(p);
    HAS(p, "worst 2.10 ms");
    p = strstr(page, "<h3>Age of frames, wrist</h3>");
    assert_non_null(p);
    HAS(p, "worst 33.0 ms");
    free(page);
}

static void a_verdict_is_shown(void **state)
{
    (void)state;
    size_t n;
    struct replay_result v = {.ticks = 1200,
                              .inputs = 1300,
                              .chunks = 37,
                              .commands = 1200,
                              .covered_ns = 12 * NS_PER_S,
                              .took_ns = NS_PER_S / 10,
                              .bits = true};
    usual_run();
    char *page = write_report(&v, &n);
    HAS(page, "A replay gives the same");
    HAS(page, "1200 ticks, 1300 inputs, 37 chunks and 1200 commands");
    HAS(page, "120 times faster");
    free(page);
    v.first = (struct replay_difference){true, false, 77, "tick",
                                         "commanded[1]: 0.5 then, 0.25 <now>"};
    v.differing[2] = 3;
    page = write_report(&v, &n);
    HAS(page, "A replay gives something else");
    HAS(page, "at tick 77, in the tick: commanded[1]: 0.5 then, 0.25 &lt;now&gt;");
    free(page);
    v = (struct replay_result){0};
    page = write_report(&v, &n);
    HAS(page, "Nothing of this recording could be replayed");
    free(page);
}

// 360 000 ticks: a few seconds, a page below 5 MB, and memory that has not grown with the length.
static void an_hour_fits(void **state)
{
    (void)state;
    struct run_log l;
    struct timespec a, b;
    size_t n;
    double seconds =
        getenv("ACTD_REPORT_SECONDS") ? atof(getenv("ACTD_REPORT_SECONDS")) : 3600;
    open_run(&l);
    put_run(&l, seconds, 0);
    run_log_close(&l);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    char *page = write_report(NULL, &n);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    double took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    print_message("%.0f s of log: %.2f MB of page in %.1f s\n", seconds, (double)n / 1e6,
                  took);
    assert_true(n < 5000000);
    HAS(page, "</html>");
    free(page);
}

static void little_is_enough(void **state)
{
    (void)state;
    struct run_log l;
    struct logbook *book;
    const char *path = log_path;
    size_t n;
    open_run(&l); // nothing at all
    run_log_close(&l);
    assert_int_equal(logbook_open(&book, &path, 1, &err), 0);
    assert_int_equal(report_write(book, page_path, NULL, &err), -ENODATA);
    HAS(err.text, "no message in it");
    logbook_close(book);
    open_run(&l); // one tick
    put_tick(&l, 5, NS_PER_S, 0, false);
    run_log_close(&l);
    char *page = write_report(NULL, &n);
    HAS(page, "</html>");
    free(page);
}

// Somebody else's file: joint states and actions are drawn all the same.
static void a_foreign_log_is_shown(void **state)
{
    (void)state;
    struct run_log l;
    const struct mcap_pair pair[] = {{"fps", "30"}};
    uint8_t out[4096];
    size_t n;
    run_log_open(&l, log_path, "dataset", pair, 1);
    for (int i = 0; i < 100; i++) {
        double pos[JOINTS] = {i * 0.01, -i * 0.01, 0};
        ns_t at = i * 33 * NS_PER_MS;
        n = run_log_joints(joint_name, pos, JOINTS, at, out);
        run_log_put(&l, "/joint_states", "foxglove.JointStates", at, out, n);
        run_log_put(&l, "/action", "foxglove.JointStates", at, out, n);
        if (i % 20 == 0)
            put_frame(&l, "/camera/top", false, i, at);
    }
    run_log_close(&l);
    char *page = write_report(NULL, &n);
    HAS(page, "<h3>lift</h3>");
    HAS(page, "</i>action</span>");
    HAS(page, "<h3>top</h3>");
    assert_true(count(page, "data:image/jpeg") >= 4);
    assert_null(strstr(page, "Timing"));
    free(page);
}

static void what_cannot_be_written_is_said(void **state)
{
    (void)state;
    struct logbook *book;
    const char *path = log_path;
    char link_path[128];
    struct stat st;
    usual_run();
    assert_int_equal(logbook_open(&book, &path, 1, &err), 0);
    assert_int_equal(report_write(book, "/nonexistent/page.html", NULL, &err), -ENOENT);
    HAS(err.text, "/nonexistent/page.html");
    // A device stays a device: it is not replaced by a file of its name.
    snprintf(link_path, sizeof link_path, "%s/full", dir);
    assert_int_equal(symlink("/dev/full", link_path), 0);
    assert_int_equal(report_write(book, link_path, NULL, &err), -ENOSPC);
    assert_int_equal(lstat(link_path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    unlink(link_path);
    logbook_close(book);
}

static int run(const char *a, const char *b, const char *c)
{
    char *argv[] = {strdup("report"), strdup(a), strdup(b), strdup(c), NULL};
    int argc = *c ? 4 : *b ? 3 : *a ? 2 : 1, status = replay_report_main(argc, argv);
    for (int i = 0; i < 4; i++)
        free(argv[i]);
    return status;
}

static void the_command_has_its_statuses(void **state)
{
    (void)state;
    size_t n;
    usual_run();
    assert_int_equal(run("--help", "", ""), 0);
    assert_int_equal(run("", "", ""), 64);
    assert_int_equal(run(log_path, "", ""), 64);
    assert_int_equal(run("--wrong", "", ""), 64);
    assert_int_equal(run("/nonexistent.mcap", "-o", page_path), 66);
    assert_int_equal(run(log_path, "-o", "/nonexistent/x.html"), 73);
    assert_int_equal(run(log_path, "-o", page_path), 0);
    char *page = run_log_slurp(page_path, &n);
    HAS(page, "</html>");
    free(page);
    FILE *f = fopen(log_path, "w");
    fputs("this is no recording, whatever it is called, and it is long enough", f);
    fclose(f);
    assert_int_equal(run(log_path, "-o", page_path), 65);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_page_has_it_all),
        TEST(distributions_are_true),
        TEST(a_verdict_is_shown),
        TEST(an_hour_fits),
        TEST(little_is_enough),
        TEST(a_foreign_log_is_shown),
        TEST(what_cannot_be_written_is_said),
        TEST(the_command_has_its_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
