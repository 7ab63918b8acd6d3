// metrics: what a status becomes, read again by a strict checker and, where it is installed, by
// Prometheus' own client.
#include "tests/unit/metrics_scene.h"

#include <sys/wait.h>
#include <unistd.h>

static void numbers_come_out(void **state)
{
    static const struct {
        const char *series;
        double value;
    } want[] = {
        {"actd_up" IN, 1},
        {"actd_build_info" IN "version=\"1.2\",", 1},
        {"actd_status_timestamp_seconds" IN, 1700000000.25},
        {"actd_mode" IN "mode=\"HOLD\",", 1},
        {"actd_mode" IN "mode=\"RUNNING\",", 0},
        {"actd_reason" IN "reason=\"JOINTS_STALE\",", 1},
        {"actd_reason" IN "reason=\"NONE\",", 0},
        {"actd_loop_realtime" IN "granted=\"SCHED_FIFO 50\",", 1},
        {"actd_control_hertz" IN, 99.5},
        {"actd_ticks_total" IN, 123456789012},
        {"actd_commands_total" IN, 1000},
        {"actd_fault_active" IN "reason=\"JOINTS_STALE\",", 1},
        {"actd_fault_episodes_total" IN "reason=\"JOINTS_STALE\",", 3},
        {"actd_fault_ticks_total" IN "reason=\"JOINTS_STALE\",", 40},
        {"actd_fault_episodes_total" IN "reason=\"LOOP_STALLED\",", 0},
        {"actd_budget_limit_seconds" IN "budget=\"tick\",", 0.002},
        {"actd_budget_missed_total" IN "budget=\"sensor_age\",", 3},
        {"actd_stream_age_seconds" IN "stream=\"joints\",", 0.0025},
        {"actd_stream_received_total" IN "stream=\"front\",", 8},
        {"actd_frames_seen_total" IN "stream=\"front\",how=\"early\",", 3},
        {"actd_frames_seen_total" IN "stream=\"front\",how=\"kept\",", 4},
        {"actd_frames_seen_total" IN "stream=\"front\",how=\"computed\",", 5},
        {"actd_joint_measured_radians" IN "joint=\"pan\",", -0.5},
        {"actd_joint_max_radians" IN "joint=\"front\",", 1.5},
        {"actd_seam_max_radians" IN "joint=\"pan\",", 0.01},
        {"actd_limited_total" IN "joint=\"pan\",limit=\"jerk\",", 0},
        {"actd_chunk_age_seconds" IN, 0.042},
        {"actd_chunk_row" IN, 3.25},
        {"actd_policy_info" IN
         "policy=\"front\",type=\"\",digest=\"d1\",config_sha256=\"\","
         "weights_sha256=\"w1\",statistics_sha256=\"\",precision=\"int8\",",
         1},
        {"actd_policy_generation" IN, 4},
        {"actd_swaps_total" IN "result=\"done\",", 3},
        {"actd_swaps_total" IN "result=\"failed\",", 2},
        {"actd_policy_previous_kept" IN, 1},
        {"actd_swap_in_progress" IN, 0},
        {"actd_record_active" IN, 1},
        {"actd_record_healthy" IN, 0},
        {"actd_record_files_total" IN, 2},
        {"actd_record_bytes_total" IN, 3e9},
        {"actd_record_messages_total" IN, 44},
        {"actd_record_lost_total" IN "class=\"frames\",", 21},
        {"actd_record_lost_total" IN "class=\"ticks\",", 0},
        {"actd_record_removed_total" IN, 6},
        {"actd_record_held_bytes" IN, 5},
        {"actd_record_write_slowest_seconds" IN, 0.25},
        {"actd_record_cpu_seconds_total" IN, 1.5},
    };

    (void)state;
    scene("front");
    write_and_check();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (value_of(want[i].series) != want[i].value)
            fail_msg("%s is %.17g", want[i].series, value_of(want[i].series));
    assert_true(isnan(value_of("actd_joint_wanted_radians" IN "joint=\"pan\",")));
}

// In a state set exactly one series is 1, whatever the state.
static void one_state_at_a_time(void **state)
{
    (void)state;
    for (int mode = 1; mode <= 11; mode++)
        for (int reason = 0; reason < REASONS; reason += 3) {
            double modes = 0, reasons = 0;

            scene("a");
            w.m.mode = (Actd__V1__Mode)mode;
            w.m.reason = (Actd__V1__Reason)reason;
            write_and_check();
            for (int i = 0; i < n_samples; i++) {
                modes += strcmp(sample[i].name, "actd_mode") ? 0 : sample[i].value;
                reasons += strcmp(sample[i].name, "actd_reason") ? 0 : sample[i].value;
            }
            assert_true(modes == 1 && reasons == 1);
        }
}

// ---- histograms -----------------------------------------------------------------------------

static uint64_t dice = 88172645463325252u;

static uint64_t roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    return dice ^= dice << 17;
}

// The daemon's own bucket of a duration, by its definition: 16 to the power of two.
static uint64_t bucket_end(uint64_t ns)
{
    uint64_t width = 1;

    while (ns / width >= 32)
        width *= 2;
    return (ns / width + 1) * width;
}

static int by_end(const void *a, const void *b)
{
    const Actd__V1__Bucket *const *x = a, *const *y = b;

    return ((*x)->below_ns > (*y)->below_ns) - ((*x)->below_ns < (*y)->below_ns);
}

static void add_duration(uint64_t ns)
{
    uint64_t end = bucket_end(ns);
    size_t n = w.h[0].n_buckets, i = 0;

    while (i < n && w.buckets[i]->below_ns != end)
        i++;
    if (i == n) {
        actd__v1__bucket__init(&w.bucket[n]);
        w.bucket[n].below_ns = end;
        w.buckets[n] = &w.bucket[n];
        w.h[0].n_buckets++;
    }
    w.buckets[i]->count++;
    w.h[0].count++;
    w.h[0].sum_ns += ns;
}

// Random durations against counting them one by one: the bounds are those of the daemon's
// buckets, so that not one sample is on the wrong side.
static void buckets_count_exactly(void **state)
{
    static uint64_t ns[5000];
    double sum = 0;
    int bounds = 0;

    (void)state;
    scene("a");
    w.h[0].buckets = w.buckets;
    for (int i = 0; i < 5000; i++) {
        ns[i] = roll() >> (29 + roll() % 34); // 1 ns … 34 s
        add_duration(ns[i]);
        sum += (double)ns[i] / 1e9;
    }
    qsort(w.buckets, w.h[0].n_buckets, sizeof *w.buckets, by_end);
    write_and_check();
    for (int i = 0; i < n_samples; i++) {
        int below = 0;

        if (strcmp(sample[i].name, "actd_wakeup_lateness_seconds_bucket") != 0)
            continue;
        bounds++;
        for (int k = 0; k < 5000; k++)
            below += (double)ns[k] < sample[i].le * 1e9 - 1e-3;
        if (below != (int)sample[i].value)
            fail_msg("le %.12g: %d, not %g", sample[i].le, below, sample[i].value);
    }
    assert_int_equal(bounds, 2 * 24 + 2);
    assert_true(fabs(value_of("actd_wakeup_lateness_seconds_sum" IN) / sum - 1) < 1e-9);
    assert_true(value_of("actd_wakeup_lateness_seconds_count" IN) == 5000);
}

// The series of a histogram are the same ones whatever was measured.
static void buckets_are_always_the_same(void **state)
{
    int without, n;

    (void)state;
    scene("a");
    write_and_check();
    without = n_samples;
    w.h[0].buckets = w.buckets;
    add_duration(5);
    add_duration(UINT64_MAX / 2);
    write_and_check();
    n = n_samples;
    assert_int_equal(n, without);
    w.h[0].count = 17; // read at another moment than the buckets
    write_and_check();
    assert_true(value_of("actd_wakeup_lateness_seconds_count" IN) == 2);
    w.h[0].n_buckets = 0; // no room for them in the message: no bound is made up
    write_and_check();
    assert_true(value_of("actd_wakeup_lateness_seconds_count" IN) == 17);
    assert_int_equal(n_samples, without - 49);
}

static void limited_by_joint_and_limit(void **state)
{
    static char *const name[] = {"pan:velocity", "pan:x:jerk", "a:position"};

    (void)state;
    scene("a");
    w.joint[1].name = "pan:x"; // a colon in a name does not confuse
    for (size_t i = 0; i < 3; i++) {
        actd__v1__counter__init(&w.limited[i]);
        w.limited[i].name = name[i];
        w.limited[i].value = 10 + i;
        w.limiteds[i] = &w.limited[i];
    }
    w.m.n_limited = 3;
    w.m.limited = w.limiteds;
    write_and_check();
    assert_true(value_of("actd_limited_total" IN "joint=\"pan\",limit=\"velocity\",") ==
                10);
    assert_true(value_of("actd_limited_total" IN "joint=\"pan:x\",limit=\"jerk\",") ==
                11);
    assert_true(value_of("actd_limited_total" IN "joint=\"pan\",limit=\"jerk\",") == 0);
}

// ---- size -----------------------------------------------------------------------------------

// Every joint, camera and cause with the longest names, each byte of them escaped.
static void the_largest_fits(void **state)
{
    static char name[CONFIG_NAME], cause[DROPS][256], sha[65];
    size_t n;

    (void)state;
    memset(name, '"', sizeof name - 1);
    memset(sha, 'f', 64);
    scene(name);
    w.m.instance = "instances-have-names-of-letters-digits-and-dots-up-to-sixty-three";
    FILL(joint, joints, JOINTS, actd__v1__joint_status__init, w.joint[i].name = name);
    FILL(seam, seams, JOINTS, actd__v1__seam__init, w.seam[i].joint = name);
    FILL(stream, streams, CAMERAS + 1, actd__v1__stream__init,
         (w.stream[i].name = name, w.stream[i].received = UINT64_MAX));
    for (size_t i = 0; i < DROPS; i++)
        snprintf(cause[i], sizeof cause[i], "%s frames number %zu", name, i);
    FILL(drop, drops, DROPS, actd__v1__counter__init,
         (w.drop[i].name = cause[i], w.drop[i].value = UINT64_MAX));
    for (int i = 0; i < JOINTS; i++)
        w.joint[i].measured = w.joint[i].commanded = w.joint[i].wanted =
            -0.123456789012e-100;
    w.policy.config_sha256 = w.policy.weights_sha256 = w.policy.statistics_sha256 = sha;
    n = metrics_write(&w.m, text, sizeof text);
    print_message("# the largest text has %zu of %d bytes\n", n, METRICS_MAX);
    assert_true(n > 0);
}

static void too_little_room_is_nothing(void **state)
{
    static char small[METRICS_MAX];
    size_t n;

    (void)state;
    scene("front");
    n = write_and_check();
    for (size_t size = 0; size <= n; size += size < 300 ? 1 : 997) {
        memset(small, 'x', sizeof small);
        assert_int_equal(metrics_write(&w.m, small, size), 0);
        assert_true(size == 0 || small[0] == '\0');
        assert_true(small[size] == 'x');
    }
    assert_int_equal(metrics_write(&w.m, small, n + 1), n);
}

static void an_empty_status_is_written_too(void **state)
{
    static unsigned char packed[1024];

    (void)state;
    memset(&w, 0, sizeof w);
    actd__v1__status__init(&w.m);
    write_and_check();
    assert_true(value_of("actd_up{instance=\"\",") == 1);
    // Before the first chunk, and before the first message of a stream, there is no age.
    scene("a");
    w.chunk.id = 0;
    w.stream[0].received = 0;
    write_and_check();
    assert_null(strstr(text, "actd_chunk_age_seconds"));
    assert_null(
        strstr(text, "actd_stream_age_seconds{instance=\"left\",stream=\"joints\""));
    assert_non_null(strstr(text, "actd_chunk_in_use{instance=\"left\"} 0\n"));

    memset(packed, 0xff, sizeof packed); // not a status
    assert_int_equal(metrics_write_packed(packed, sizeof packed, text, sizeof text), 0);
}

static void a_packed_status_is_the_same(void **state)
{
    static unsigned char packed[64 * 1024];
    static char again[METRICS_MAX];
    size_t n;

    (void)state;
    scene("front");
    n = actd__v1__status__get_packed_size(&w.m);
    assert_true(n <= sizeof packed);
    actd__v1__status__pack(&w.m, packed);
    write_and_check();
    assert_int_equal(metrics_write_packed(packed, n, again, sizeof again), strlen(text));
    assert_string_equal(again, text);
}

// ---- Prometheus' own parser -----------------------------------------------------------------

// ACTD_PYTHON names an interpreter with prometheus_client; tests/metrics/parse.py reads.
static void prometheus_reads_it(void **state)
{
    const char *python = getenv("ACTD_PYTHON");
    char name[] = "/tmp/actd-metrics-XXXXXX", command[512], line[2048], want[64];
    bool counted = false, escaped = false;
    int fd, status;
    FILE *f;

    (void)state;
    scene("a\"b\\c\nd \xc3\xa4");
    w.h[0].buckets = w.buckets;
    for (int i = 0; i < 100; i++)
        add_duration(roll() >> 40);
    qsort(w.buckets, w.h[0].n_buckets, sizeof *w.buckets, by_end);
    write_and_check();
    snprintf(want, sizeof want, "# %d samples\n", n_samples);
    fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    snprintf(command, sizeof command, "%s tests/metrics/parse.py <%s",
             python ? python : "python3", name);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        counted = counted || strcmp(line, want) == 0;
        escaped = escaped || strstr(line, "'a\"b\\\\c\\nd \xc3\xa4'"); // Python's repr
    }
    status = pclose(f);
    unlink(name);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) {
        print_message("SKIPPED: no prometheus_client for %s\n",
                      python ? python : "python3");
        skip();
    }
    assert_int_equal(status, 0);
    assert_true(counted);
    assert_true(escaped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_out),
        cmocka_unit_test(one_state_at_a_time),
        cmocka_unit_test(buckets_count_exactly),
        cmocka_unit_test(buckets_are_always_the_same),
        cmocka_unit_test(limited_by_joint_and_limit),
        cmocka_unit_test(the_largest_fits),
        cmocka_unit_test(too_little_room_is_nothing),
        cmocka_unit_test(an_empty_status_is_written_too),
        cmocka_unit_test(a_packed_status_is_the_same),
        cmocka_unit_test(prometheus_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
