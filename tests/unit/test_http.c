// The metrics server as a scraper and an attacker on the same machine see it.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/clock.h"
#include "daemon/http_impl.h"
#include "daemon/metrics.h"
#include "daemon/rt.h"

#define LORIS  100
#define BROKEN 5

struct page {
    int calls, policy, nice;
    const char *text;
};

static struct http *server;
static struct page page;
static struct config_error err;
static char answer[2 * METRICS_MAX];

static size_t write_page(void *arg, char *out, size_t size)
{
    struct page *p = arg;
    id_t self = (id_t)syscall(SYS_gettid);

    p->calls++;
    p->policy = sched_getscheduler((pid_t)self);
    p->nice = getpriority(PRIO_PROCESS, self);
    return (size_t)snprintf(out, size, "%s", p->text);
}

static int start(const char *listen)
{
    const struct http_source src = {write_page, &page};

    page.text = "actd_up 1\n";
    page.calls = 0;
    return http_start_source(&server, listen, &src, &err);
}

static int set_up(void **state)
{
    (void)state;
    return start("127.0.0.1:0");
}

static int tear_down(void **state)
{
    (void)state;
    http_stop(server);
    server = NULL;
    return 0;
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(server)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

// Whatever comes until the other side closes, at most 7 s long.
static size_t hear(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t n = 0;

    while (poll(&p, 1, 7000) == 1) {
        ssize_t got = read(fd, answer + n, sizeof answer - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    answer[n] = '\0';
    close(fd);
    return n;
}

static const char *ask(const char *request)
{
    int fd = dial();

    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    hear(fd);
    return answer;
}

static void says(const char *request, const char *want)
{
    if (!strstr(ask(request), want))
        fail_msg("%s\nanswered\n%s\nwithout %s", request, answer, want);
}

static const char *body(void)
{
    const char *b = strstr(answer, "\r\n\r\n");

    assert_non_null(b);
    return b + 4;
}

#define SCRAPE "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void metrics_are_served(void **state)
{
    (void)state;
    says(SCRAPE, "HTTP/1.1 200 OK\r\n");
    assert_non_null(strstr(answer, "Content-Type: " METRICS_TYPE "\r\n"));
    assert_non_null(strstr(answer, "Connection: close\r\n"));
    assert_string_equal(body(), "actd_up 1\n");
    says("GET /metrics?x=1 HTTP/1.0\r\n\r\n", " 200 OK\r\n");
    says("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "href=\"/metrics\"");
}

static void head_has_no_body(void **state)
{
    (void)state;
    says("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 10\r\n");
    assert_string_equal(body(), "");
}

static void all_else_is_refused(void **state)
{
    static const char *const method[] = {"POST",  "PUT",     "DELETE", "OPTIONS",
                                         "PATCH", "CONNECT", "TRACE",  "BREW"};
    static const char *const path[] = {"/metrics/",   "/x",       "//metrics", "/METRICS",
                                       "/etc/passwd", "/../../x", "/%2e%2e/x"};
    char request[128];

    (void)state;
    for (size_t i = 0; i < sizeof method / sizeof *method; i++) {
        snprintf(request, sizeof request, "%s /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                 method[i]);
        says(request, " 405 ");
        assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
    }
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path[i]);
        says(request, " 404 ");
    }
    assert_int_equal(page.calls, 0);
}

static void bodies_are_not_waited_for(void **state)
{
    ns_t before = clock_now_ns();

    (void)state;
    says("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nabc",
         " 405 ");
    ask("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nabc");
    assert_true(clock_now_ns() - before < 4 * NS_PER_S);
}

// Far larger than a request may be: an error, or the connection cut, and the server lives.
static void large_and_broken_requests_do_no_harm(void **state)
{
    static char large[64 * 1024];
    int fd[BROKEN];
    static const char *const broken[BROKEN] = {
        "\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02", "GET / HTTP/9.9\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost x\r\n\r\n"};

    (void)state;
    memset(large, 'a', sizeof large);
    for (int header = 0; header < 2; header++) {
        int one = dial();
        const char *start_of = header ? "GET /metrics HTTP/1.1\r\nHost: " : "GET /";

        (void)send(one, start_of, strlen(start_of), MSG_NOSIGNAL);
        (void)send(one, large, sizeof large, MSG_NOSIGNAL);
        (void)send(one, "\r\n\r\n", 4, MSG_NOSIGNAL);
        hear(one);
        assert_null(strstr(answer, " 200 "));
    }
    for (int i = 0; i < BROKEN; i++) {
        fd[i] = dial();
        (void)send(fd[i], broken[i], strlen(broken[i]), MSG_NOSIGNAL);
        shutdown(fd[i], SHUT_WR);
    }
    says(SCRAPE, " 200 OK\r\n");
    for (int i = 0; i < BROKEN; i++)
        hear(fd[i]); // refused, or cut with its time: not for ever
    says(SCRAPE, " 200 OK\r\n");
}

// A hundred who have begun a request and do not end it; each drips a byte now and then.
static void slow_clients_are_in_nobodys_way(void **state)
{
    int slow[LORIS];
    ns_t worst = 0, begin = clock_now_ns();

    (void)state;
    for (int i = 0; i < LORIS; i++) {
        slow[i] = dial();
        assert_true(send(slow[i], "GET /metrics HTTP/1.1\r\nX: ", 25, MSG_NOSIGNAL) > 0);
    }
    for (int round = 0; round < 20; round++) {
        ns_t before = clock_now_ns();

        for (int i = 0; i < LORIS; i++)
            (void)send(slow[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        says(SCRAPE, " 200 OK\r\n");
        if (clock_now_ns() - before > worst)
            worst = clock_now_ns() - before;
    }
    print_message("# worst scrape among %d slow clients: %.1f ms\n", LORIS,
                  (double)worst / (double)NS_PER_MS);
    assert_true(worst < NS_PER_S);
    // And however busily they drip, none stays longer than its time.
    struct pollfd last = {.fd = slow[LORIS - 1], .events = POLLIN};
    while (poll(&last, 1, 50) == 0 && clock_now_ns() - begin < 3 * HTTP_LIFE_NS)
        (void)send(slow[LORIS - 1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    assert_true(clock_now_ns() - begin < HTTP_LIFE_NS + 2 * NS_PER_S);
    for (int i = 0; i < LORIS; i++)
        close(slow[i]);
}

// A reader that takes nothing of a long answer is cut like the others.
static void who_does_not_read_is_cut(void **state)
{
    static char large[METRICS_MAX - 1];
    int deaf[LORIS];

    (void)state;
    memset(large, '#', sizeof large - 1);
    page.text = large;
    for (int i = 0; i < LORIS; i++) {
        int small = 1024;

        deaf[i] = dial();
        (void)setsockopt(deaf[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        (void)send(deaf[i], SCRAPE, strlen(SCRAPE), MSG_NOSIGNAL);
    }
    ns_t before = clock_now_ns();
    says(SCRAPE, " 200 OK\r\n");
    assert_int_equal(strlen(body()), sizeof large - 1);
    assert_true(clock_now_ns() - before < NS_PER_S);
    for (int i = 0; i < LORIS; i++)
        close(deaf[i]);
}

static int open_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void a_thousand_connections_leave_nothing_behind(void **state)
{
    int before = open_descriptors();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        int fd = dial();

        if (i % 3 == 0)
            (void)send(fd, "GET", 3, MSG_NOSIGNAL);
        close(fd);
    }
    ns_t asked = clock_now_ns();
    says(SCRAPE, " 200 OK\r\n");
    assert_true(clock_now_ns() - asked < NS_PER_S);
    // Half a request lives 5 s at most, from when it was let in.
    for (int i = 0; i < 200 && open_descriptors() > before; i++)
        poll(NULL, 0, 50);
    assert_true(open_descriptors() <= before);
}

static void the_text_is_made_ten_times_a_second_at_most(void **state)
{
    ns_t before = clock_now_ns();

    (void)state;
    for (int i = 0; i < 50; i++)
        says(SCRAPE, " 200 OK\r\n");
    assert_true(page.calls >= 1);
    assert_true(page.calls <= 1 + (clock_now_ns() - before) / HTTP_FRESH_NS);
}

static void without_a_status_it_says_so(void **state)
{
    (void)state;
    page.text = "";
    says(SCRAPE, " 503 ");
}

static void runs_as_plain(void **state)
{
    (void)state;
    says(SCRAPE, " 200 OK\r\n");
    assert_int_equal(page.policy, SCHED_OTHER);
    assert_true(page.nice >= 5);
}

static void *start_as_fifo(void *arg)
{
    static char granted[RT_GRANTED];

    *(int *)arg = rt_set_priority(10, granted);
    assert_int_equal(start("127.0.0.1:0"), 0);
    return NULL;
}

// Its maker's class is not inherited.
static void a_maker_of_high_priority_does_not_matter(void **state)
{
    pthread_t t;
    int rc = -1;

    assert_int_equal(pthread_create(&t, NULL, start_as_fifo, &rc), 0);
    pthread_join(t, NULL);
    if (rc == 0)
        runs_as_plain(state);
    http_stop(server);
    server = NULL;
    if (rc != 0)
        skip();
}

static void an_address_in_use_is_a_clear_error(void **state)
{
    const struct http_source src = {write_page, &page};
    struct http *second = NULL;
    char listen[32];

    (void)state;
    snprintf(listen, sizeof listen, "127.0.0.1:%d", http_port(server));
    assert_int_equal(http_start_source(&second, listen, &src, &err), -EADDRINUSE);
    assert_null(second);
    assert_non_null(strstr(err.text, listen));
    assert_non_null(strstr(err.text, "another program"));
    says(SCRAPE, " 200 OK\r\n"); // and the first one lives
    http_stop(server);
    assert_int_equal(start(listen), 0); // at once, connections fading away or not
    says(SCRAPE, " 200 OK\r\n");
}

// In a child, since a filter can not be taken off: the kernel answers socket(AF_INET) and bind
// with an error, as it does in a service's sandbox. Exit status 0 = the sentence has the remedy.
static int listen_refused(long call, int error, const char *listen)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    int port = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;
    if (http_listen(listen, &port, &err) != -error)
        return 1;
    if (!strstr(err.text, listen) || !strstr(err.text, "TCP is not allowed here"))
        return 2;
    return strstr(err.text, "; as a service install tcp.conf "
                            "(/usr/share/doc/actd/examples) with systemctl edit or as a "
                            "drop-in")
               ? 0
               : 3;
}

static void a_sandbox_without_tcp_names_its_drop_in(void **state)
{
    static const struct {
        long call;
        int error;
        const char *listen;
    } box[] = {
        {SYS_socket, EAFNOSUPPORT, "127.0.0.1:9464"},
        {SYS_socket, EACCES, "[::1]:9464"},
        {SYS_socket, EPERM, "127.0.0.1:9464"},
        {SYS_bind, EACCES, "127.0.0.1:9464"},
        {SYS_bind, EPERM, "127.0.0.1:80"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof box / sizeof *box; i++) {
        pid_t child = fork();
        int status;

        assert_true(child >= 0);
        if (child == 0)
            _exit(listen_refused(box[i].call, box[i].error, box[i].listen));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status >> 8 == 77)
            skip();
        if (status != 0)
            fail_msg("box %zu: %d", i, status >> 8);
    }
    pid_t child = fork();
    int status;
    if (child == 0) // root's ports are another matter
        _exit(listen_refused(SYS_bind, EACCES, "127.0.0.1:80") == 2 &&
                      strstr(err.text, "below 1024")
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void only_loopback_is_listened_on(void **state)
{
    static const char *const bad[] = {"0.0.0.0:9464",
                                      "192.168.0.1:9464",
                                      "[::]:9464",
                                      "128.0.0.1:9464",
                                      "localhost:9464",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:x",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "127.0.0.1: 80",
                                      "127.1:80",
                                      "::1:80",
                                      "[::1]",
                                      "",
                                      ":80",
                                      "127.0.0.1:80x",
                                      "127.0.0.1:99999999999999999999"};
    const struct http_source src = {write_page, &page};
    struct http *h;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (http_start_source(&h, bad[i], &src, &err) != -EINVAL)
            fail_msg("%s", bad[i]);
        assert_null(h);
        assert_non_null(strstr(err.text, "metrics.listen"));
    }
    assert_int_equal(start("127.8.9.10:0"), 0);
    http_stop(server);
    server = NULL;
    int rc = start("[::1]:0"); // where there is IPv6
    assert_true(rc == 0 || rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT);
    http_stop(server);
    server = NULL;
    http_stop(NULL);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(metrics_are_served),
        WITH(head_has_no_body),
        WITH(all_else_is_refused),
        WITH(bodies_are_not_waited_for),
        WITH(large_and_broken_requests_do_no_harm),
        WITH(slow_clients_are_in_nobodys_way),
        WITH(who_does_not_read_is_cut),
        WITH(a_thousand_connections_leave_nothing_behind),
        WITH(the_text_is_made_ten_times_a_second_at_most),
        WITH(without_a_status_it_says_so),
        WITH(runs_as_plain),
        cmocka_unit_test(a_maker_of_high_priority_does_not_matter),
        WITH(an_address_in_use_is_a_clear_error),
        cmocka_unit_test(a_sandbox_without_tcp_names_its_drop_in),
        cmocka_unit_test(only_loopback_is_listened_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
