// A control socket with a time of its own, clients that are other users where the test
// may be root, and in place of loop, status and swap something that says what the test
// wants.
#ifndef CONTROL_FIXTURE_H
#define CONTROL_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/control_impl.h"
#include "daemon/recorder.h"

#define V(verb)   ACTD__V1__VERB__VERB_##verb
#define R(result) ACTD__V1__RESULT__RESULT_##result

#define READER   41001u // in operators.read
#define OPERATOR 41002u // in operators.act
#define STRANGER 41003u

struct world {
    char directory[64], log[80];
    struct config cfg;
    struct board board;
    struct loop_report report;
    struct explain_source explain;
    struct control *control;
    ns_t now;
    int stderr_was;
};
static struct world w;

// ---- status and swap as the test wants them ------------------------------------------

static struct {
    struct policy_info info;
    struct fitted fitted;
    struct swap_report look;
    struct swap_request asked;
    struct swap_entry entry[3];
    uint64_t known; // number that swap_look knows
    bool busy;      // a decided swap is still putting away
    int begin, list, held, cancelled;
    int record;           // what the recorder answers
    int record_late;      // -EALREADY to so many marks first
    int started, stopped; // recordings
    char mark[CONTROL_TEXT];
    size_t status;
} fake;

static struct status *const some_status = (struct status *)&fake;
static struct swap *const some_swap = (struct swap *)&fake;
static struct recorder *const some_recorder = (struct recorder *)&fake;

int recorder_begin(struct recorder *r, char text[256])
{
    (void)r;
    fake.started++;
    snprintf(text, 256, "recording, in /r");
    return fake.record;
}

int recorder_end(struct recorder *r, char text[256])
{
    (void)r;
    fake.stopped++;
    snprintf(text, 256, "the recording ends");
    return fake.record;
}

int recorder_mark(struct recorder *r, const char *what, char text[256])
{
    (void)r;
    snprintf(fake.mark, sizeof fake.mark, "%s", what);
    snprintf(text, 256, "%s", fake.record_late > 0 ? "nothing is recorded" : "marked");
    return fake.record_late > 0 && fake.record_late-- ? -EALREADY : fake.record;
}

size_t status_pack(struct status *s, uint8_t *out, size_t size)
{
    Actd__V1__Status m;

    (void)s;
    actd__v1__status__init(&m);
    m.instance = w.cfg.instance;
    m.ticks = 12345;
    if (fake.status > 0) { // as long as it gets
        memset(out, 0, size < fake.status ? size : fake.status);
        return fake.status;
    }
    return actd__v1__status__get_packed_size(&m) <= size ? actd__v1__status__pack(&m, out)
                                                         : 0;
}

void status_received_hz(struct status *s, double hz[POLICY_MAX_CAMERAS + 1])
{
    (void)s;
    hz[0] = 100;
}

int swap_begin(struct swap *s, const struct swap_request *r, uint64_t *number, char why[],
               size_t size)
{
    (void)s;
    fake.asked = *r;
    *number = fake.known;
    snprintf(why, size, "why not");
    return fake.begin;
}

bool swap_look(struct swap *s, uint64_t number, struct swap_report *out)
{
    (void)s;
    *out = fake.look;
    return number == fake.known;
}

bool swap_busy(struct swap *s)
{
    (void)s;
    return fake.busy;
}

void swap_cancel(struct swap *s, const char *why)
{
    (void)s;
    (void)why;
    fake.cancelled++;
}

const struct fitted *swap_hold(struct swap *s)
{
    (void)s;
    fake.held++;
    return &fake.fitted;
}

void swap_release(struct swap *s)
{
    (void)s;
    fake.held--;
}

int swap_list(struct swap *s, struct swap_entry *out, int max)
{
    (void)s;
    for (int i = 0; i < fake.list && i < max; i++)
        out[i] = fake.entry[i];
    return fake.list;
}

// ---- the world -----------------------------------------------------------------------

static void write_report(enum ladder_state mode, enum ladder_reason reason)
{
    w.report.mode = mode;
    w.report.reason = reason;
    slot_write(&w.board.report, &w.report);
}

// The loop takes what is asked, and goes to `to`, or stays for `cause`. Returns what it
// took.
static inline uint32_t loop_does(enum ladder_state to, enum ladder_reason cause)
{
    struct loop_answer *a = &w.report.answer;

    a->requests = atomic_exchange(&w.board.requests, 0);
    a->number++;
    a->from = w.report.mode;
    a->to = to;
    a->cause = cause;
    a->index = -1;
    write_report(to, cause);
    return a->requests;
}

static inline int world_open(const char *act, const char *read)
{
    const struct control_source src = {.cfg = &w.cfg,
                                       .board = &w.board,
                                       .status = some_status,
                                       .swap = some_swap,
                                       .recorder = some_recorder,
                                       .explain = &w.explain};
    struct config_error err = {""};
    int rc;

    snprintf(w.cfg.operators.act, sizeof w.cfg.operators.act, "%s", act);
    snprintf(w.cfg.operators.read, sizeof w.cfg.operators.read, "%s", read);
    rc = control_open(&w.control, &src, &err);
    if (rc != 0)
        print_error("%s\n", err.text);
    return rc;
}

static int world_up(void **state)
{
    (void)state;
    memset(&w, 0, sizeof w);
    memset(&fake, 0, sizeof fake);
    fake.known = 1;
    fake.fitted.info = &fake.info;
    snprintf(w.directory, sizeof w.directory, "/tmp/test_control.XXXXXX");
    if (!mkdtemp(w.directory))
        return -1;
    snprintf(w.cfg.file, sizeof w.cfg.file, "r.yaml");
    snprintf(w.cfg.instance, sizeof w.cfg.instance, "left");
    snprintf(w.cfg.operators.socket, sizeof w.cfg.operators.socket, "%s/control",
             w.directory);
    w.cfg.n_joints = 1;
    w.cfg.joint[0].home = 0;
    w.explain.cfg = &w.cfg;
    w.explain.board = &w.board;
    w.now = 1000 * NS_PER_S;
    if (board_init(&w.board, 0, 4, 1) != 0)
        return -1;
    write_report(LADDER_READY, REASON_NONE);
    // The log goes to a file, and is looked at.
    snprintf(w.log, sizeof w.log, "%s/log", w.directory);
    w.stderr_was = dup(STDERR_FILENO);
    int fd = open(w.log, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return 0;
}

static int world_down(void **state)
{
    (void)state;
    dup2(w.stderr_was, STDERR_FILENO);
    close(w.stderr_was);
    control_stop(w.control);
    board_free(&w.board);
    unlink(w.log);
    unlink(w.cfg.operators.socket);
    assert_int_equal(fake.held, 0);
    return rmdir(w.directory);
}

static inline int log_lines(const char *with)
{
    char line[2000];
    int n = 0;
    FILE *f = fopen(w.log, "r");

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, with) != NULL;
    if (f)
        fclose(f);
    return n;
}

static inline void turn(ns_t step)
{
    w.now += step;
    control_turn(w.control, w.now);
}

// ---- clients -------------------------------------------------------------------------

static inline int client(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%.100s", w.cfg.operators.socket);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

// As another user, for the time of a connect: the kernel keeps who it was.
static inline int client_as(uid_t uid)
{
    int fd;

    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setegid(uid), 0);
    assert_int_equal(seteuid(uid), 0);
    fd = client();
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    return fd;
}

#define NEEDS_ROOT()                                          \
    do {                                                      \
        if (geteuid() != 0) {                                 \
            print_message("SKIP %s: needs root\n", __func__); \
            skip();                                           \
        }                                                     \
    } while (0)

static inline void ask_for(int fd, uint64_t id, Actd__V1__Verb verb, const char *name)
{
    uint8_t bytes[512];
    Actd__V1__ControlRequest m;
    size_t n;

    actd__v1__control_request__init(&m);
    m.id = id;
    m.verb = verb;
    if (verb == V(INSTRUCT) || verb == V(RECORD_MARK))
        m.text = (char *)(uintptr_t)name;
    else
        m.name = (char *)(uintptr_t)name;
    n = actd__v1__control_request__pack(&m, bytes);
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

// The next reply, or NULL when there is none; *gone when the session has been closed.
static inline Actd__V1__ControlReply *reply_on(int fd, bool *gone)
{
    static uint8_t bytes[CONTROL_REPLY_MAX + 1];
    static Actd__V1__ControlReply *last;
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);

    if (last)
        actd__v1__control_reply__free_unpacked(last, NULL);
    last = NULL;
    if (gone)
        *gone = n == 0 || (n < 0 && errno != EAGAIN);
    if (n <= 0)
        return NULL;
    assert_true(n <= CONTROL_REPLY_MAX);
    last = actd__v1__control_reply__unpack(NULL, (size_t)n, bytes);
    assert_non_null(last);
    return last;
}

static inline bool closed(int fd)
{
    bool gone;

    return !reply_on(fd, &gone) && gone;
}

static inline void no_reply(int fd)
{
    bool gone;

    assert_null(reply_on(fd, &gone));
    assert_false(gone);
}

static inline Actd__V1__ControlReply *expect(int fd, uint64_t id, Actd__V1__Result result)
{
    Actd__V1__ControlReply *m = reply_on(fd, NULL);

    if (!m)
        fail_msg("no reply: %s", strerror(errno));
    if (m->id != id || m->result != result)
        fail_msg("reply %d to %d: '%s'", (int)m->result, (int)m->id, m->text);
    return m;
}

// One request by one more client, with a turn in between.
static inline Actd__V1__ControlReply *asked(Actd__V1__Verb verb, const char *name,
                                            Actd__V1__Result result)
{
    static int fd = -1;

    if (fd >= 0)
        close(fd);
    fd = client();
    assert_true(fd >= 0);
    ask_for(fd, 7, verb, name);
    turn(NS_PER_MS);
    turn(NS_PER_MS);
    return expect(fd, 7, result);
}

#endif
