// The whole way: numbers of the board, through status and its message, over HTTP to a scraper.
#include "tests/unit/metrics_checker.h"
#include "tests/unit/status_rig.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon/http.h"
#include "daemon/metrics.h"

static char answer[METRICS_MAX + 1024];

// The body of GET /metrics.
static const char *scrape(const struct http *h)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(h)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = 0;
    const char *body;

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL),
                     sizeof request - 1);
    for (ssize_t got; (got = read(fd, answer + n, sizeof answer - 1 - n)) > 0;)
        n += (size_t)got;
    answer[n] = '\0';
    close(fd);
    assert_non_null(strstr(answer, " 200 OK\r\n"));
    body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

static void a_scraper_sees_the_board(void **state)
{
    struct rig *r = *state;
    struct config_error err;
    struct http *h;
    ns_t ns[400];

    r->report.mode = LADDER_RUNNING;
    r->report.commands = 4321;
    r->report.faults.of[REASON_JOINTS_STALE].episodes = 2;
    r->report.limited[1][GUARD_VELOCITY] = 17;
    for (int i = 0; i < 400; i++) {
        ns[i] = 700 + i * i * 301; // to 48 ms
        hist_add(&r->board.lateness, ns[i]);
    }
    slot_write(&r->board.report, &r->report);
    assert_int_equal(http_start(&h, "127.0.0.1:0", r->status, &err), 0);
    check_text(scrape(h));
    http_stop(h);
    assert_true(value_of("actd_mode{instance=\"left\",mode=\"RUNNING\",") == 1);
    assert_true(value_of("actd_commands_total{instance=\"left\",") == 4321);
    assert_true(
        value_of(
            "actd_fault_episodes_total{instance=\"left\",reason=\"JOINTS_STALE\",") == 2);
    assert_true(
        value_of(
            "actd_limited_total{instance=\"left\",joint=\"turn\",limit=\"velocity\",") ==
        17);
    for (int i = 0; i < n_samples; i++) {
        int below = 0;

        if (strcmp(sample[i].name, "actd_wakeup_lateness_seconds_bucket") != 0)
            continue;
        for (int k = 0; k < 400; k++)
            below += (double)ns[k] < sample[i].le * 1e9 - 1e-3;
        if (below != (int)sample[i].value)
            fail_msg("le %.12g: %d, not %g", sample[i].le, below, sample[i].value);
    }
    assert_true(value_of("actd_wakeup_lateness_seconds_count{instance=\"left\",") == 400);
}

// The largest status that there can be is a text that fits, and that a scraper takes.
static void the_worst_robot_fits(void **state)
{
    static uint8_t packed[STATUS_MOST];
    static char text[METRICS_MAX];
    struct rig *r = *state;
    size_t n;

    everything_wrong(r);
    slot_write(&r->board.report, &r->report);
    n = status_pack(r->status, packed, sizeof packed);
    assert_true(n > 0);
    n = metrics_write_packed(packed, n, text, sizeof text);
    print_message("# %zu of %d bytes\n", n, METRICS_MAX);
    assert_true(n > 0);
    check_text(text);
}

// Each cause that the status counts is one that metrics knows beforehand: no series appears with
// the first event, since its words and the list of metrics have grown apart.
static void every_cause_is_known_beforehand(void **state)
{
    static uint8_t packed[STATUS_MOST];
    static char text[METRICS_MAX];
    struct rig *r = *state;
    int before, stream = r->cfg.n_cameras, zero = 0;
    size_t n = status_pack(r->status, packed, sizeof packed);

    assert_true(metrics_write_packed(packed, n, text, sizeof text) > 0);
    check_text(text);
    before = n_samples;
    for (int v = 0; v < CHUNK_VERDICTS; v++)
        r->report.verdict[v] = 1;
    r->report.refused_vectors = r->report.gate_refusals = r->report.commands_dropped = 1;
    r->board.joint_mark.refused = r->board.joint_mark.duplicate = 1;
    r->board.joint_mark.out_of_order = r->board.joint_mark.clock_jumps = 1;
    for (int c = 0; c < stream; c++) {
        struct camera_mark *m = &r->board.camera[c];
        m->refused = m->corrupt = m->duplicate = m->out_of_order = m->clock_jumps = 1;
        r->camera[c].superseded = 1;
    }
    of_infer.no_frame = of_infer.skew = of_infer.no_joints = 1;
    of_infer.failed = of_infer.ring_full = 1;
    of_bus.send_failed = of_bus.wall_sets = of_bus.superseded = 1;
    of_bus.expired = of_bus.cut = 1;
    slot_write(&r->board.report, &r->report);
    n = status_pack(r->status, packed, sizeof packed);
    assert_true(metrics_write_packed(packed, n, text, sizeof text) > 0);
    check_text(text);
    assert_int_equal(n_samples, before);
    for (int i = 0; i < n_samples; i++)
        zero += strcmp(sample[i].name, "actd_drops_total") == 0 && sample[i].value == 0;
    assert_int_equal(zero, 1); // the black box, which writes here
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_scraper_sees_the_board),
                                       TEST(the_worst_robot_fits),
                                       TEST(every_cause_is_known_beforehand)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
