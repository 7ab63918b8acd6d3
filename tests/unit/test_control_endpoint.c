// control_endpoint: who may reach the socket, and what is never taken or removed; then
// the whole, with its thread.
#include "tests/unit/control_fixture.h"

static struct config_error err;
static struct control_endpoint e;
static char path[108];

static int open_it(bool everybody)
{
    err.text[0] = '\0';
    return control_endpoint_open(&e, path, everybody, &err);
}

static int up(void **state)
{
    int rc = world_up(state);

    snprintf(path, sizeof path, "%s/control", w.directory);
    e = (struct control_endpoint){.fd = -1};
    return rc;
}

static mode_t mode_of(const char *name)
{
    struct stat st;

    assert_int_equal(lstat(name, &st), 0);
    return st.st_mode & 07777;
}

static int connect_to(const char *name, int type)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -errno;
}

static int bind_at(const char *name, int type)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", name);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

// ---- modes ---------------------------------------------------------------------------

// Whatever the umask is, and never more than asked for, not even for an instant.
static void the_mode_is_what_is_asked_for(void **state)
{
    static const mode_t masks[] = {0, 022, 077, 0177};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int everybody = 0; everybody < 2; everybody++) {
            assert_int_equal(chmod(w.directory, 0750), 0);
            mode_t old = umask(masks[i]);
            assert_int_equal(open_it(everybody), 0);
            umask(old);
            assert_int_equal(mode_of(path), everybody ? 0666 : 0660);
            assert_int_equal(mode_of(w.directory), everybody ? 0751 : 0750);
            control_endpoint_close(&e);
            assert_int_equal(access(path, F_OK), -1);
        }
}

static void others_reach_it_only_when_they_are_named(void **state)
{
    NEEDS_ROOT();
    (void)state;
    for (int everybody = 0; everybody < 2; everybody++) {
        assert_int_equal(chmod(w.directory, 0750), 0);
        assert_int_equal(open_it(everybody), 0);
        int fd = client_as(STRANGER);
        assert_int_equal(fd >= 0, everybody);
        if (fd >= 0)
            close(fd);
        control_endpoint_close(&e);
    }
}

// ---- what is there already -----------------------------------------------------------

static void a_living_socket_is_not_taken(void **state)
{
    static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM};
    struct control_endpoint first;

    (void)state;
    for (int i = 0; i < 3; i++) {
        int fd = bind_at(path, types[i]);
        if (types[i] != SOCK_DGRAM)
            assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(open_it(false), -EADDRINUSE);
        assert_non_null(strstr(err.text, "operators.socket"));
        assert_non_null(strstr(err.text, path));
        int client_fd = connect_to(path, types[i]); // it still hears
        assert_true(client_fd >= 0);
        close(client_fd);
        close(fd);
        unlink(path);
    }
    assert_int_equal(open_it(false), 0); // one of ours
    first = e;
    assert_int_equal(open_it(false), -EADDRINUSE);
    assert_int_equal(e.fd, -1);
    int fd = connect_to(path, SOCK_SEQPACKET);
    assert_true(fd >= 0 && accept(first.fd, NULL, NULL) >= 0);
    close(fd);
    control_endpoint_close(&first);
}

static void one_whose_queue_is_full_lives_too(void **state)
{
    int fd = bind_at(path, SOCK_SEQPACKET), clients[4];

    (void)state;
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 4; i++)
        clients[i] = connect_to(path, SOCK_SEQPACKET);
    assert_int_equal(clients[3], -EAGAIN);
    assert_int_equal(open_it(false), -EADDRINUSE);
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    close(fd);
}

static void a_left_over_socket_gives_way(void **state)
{
    (void)state;
    close(bind_at(path, SOCK_SEQPACKET));
    assert_int_equal(open_it(false), 0);
    control_endpoint_close(&e);
    close(bind_at(path, SOCK_STREAM));
    assert_int_equal(open_it(false), 0);
    control_endpoint_close(&e);
}

static void another_users_left_over_is_left(void **state)
{
    NEEDS_ROOT();
    (void)state;
    close(bind_at(path, SOCK_SEQPACKET));
    assert_int_equal(chown(path, STRANGER, STRANGER), 0);
    assert_int_equal(open_it(false), -EPERM);
    assert_non_null(strstr(err.text, "user 41003"));
    assert_int_equal(access(path, F_OK), 0);
}

static void what_is_no_socket_is_never_removed(void **state)
{
    char other[140], text[8] = "";
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    (void)state;
    assert_int_equal(write(fd, "precious", 8), 8);
    close(fd);
    assert_int_equal(open_it(false), -EEXIST);
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, text, 8), 8);
    close(fd);
    // A link is what it is, and not what it shows: neither to a file nor to a socket.
    snprintf(other, sizeof other, "%s/other", w.directory);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(open_it(false), -EEXIST);
    unlink(other);
    assert_int_equal(open_it(false), -EEXIST); // dangling
    close(bind_at(other, SOCK_SEQPACKET));
    assert_int_equal(open_it(false), -EEXIST);
    assert_int_equal(access(other, F_OK), 0);
    unlink(other);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(open_it(false), -EEXIST);
    assert_int_equal(rmdir(path), 0);
}

// Somebody else's socket of our name is not removed at the end.
static void only_ours_is_removed(void **state)
{
    (void)state;
    assert_int_equal(open_it(false), 0);
    assert_int_equal(unlink(path), 0);
    int fd = bind_at(path, SOCK_STREAM);
    control_endpoint_close(&e);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
}

static void the_directory_must_be_ours_alone(void **state)
{
    char link[100];

    (void)state;
    assert_int_equal(chmod(w.directory, 0770), 0);
    assert_int_equal(open_it(false), -EPERM);
    assert_non_null(strstr(err.text, "chmod go-w"));
    assert_int_equal(chmod(w.directory, 01777), 0); // as /tmp
    assert_int_equal(open_it(true), 0);
    assert_int_equal(mode_of(w.directory), 01777);
    control_endpoint_close(&e);
    assert_int_equal(chmod(w.directory, 0750), 0);
    snprintf(link, sizeof link, "%s.link", w.directory);
    assert_int_equal(symlink(w.directory, link), 0);
    snprintf(path, sizeof path, "%s/control", link);
    assert_int_equal(open_it(false), -ENOTDIR);
    unlink(link);
    assert_int_equal(open_it(false), -ENOENT);
    assert_non_null(strstr(err.text, "create it"));
    snprintf(path, sizeof path, "%s/control", w.directory);
    if (geteuid() == 0) {
        assert_int_equal(chown(w.directory, STRANGER, STRANGER), 0);
        assert_int_equal(open_it(false), -EPERM);
        assert_non_null(strstr(err.text, "belongs to user 41003"));
        assert_int_equal(chown(w.directory, 0, 0), 0);
    }
}

// ---- with its thread -----------------------------------------------------------------

static Actd__V1__ControlReply *wait_for_reply(int fd)
{
    Actd__V1__ControlReply *m = NULL;

    for (int i = 0; i < 1000 && !m; i++) {
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
        m = reply_on(fd, NULL);
    }
    return m;
}

static int start(struct control **c)
{
    const struct control_source src = {.cfg = &w.cfg,
                                       .board = &w.board,
                                       .status = some_status,
                                       .swap = some_swap,
                                       .explain = &w.explain};

    err.text[0] = '\0';
    return control_start(c, &src, &err);
}

static void the_thread_answers_and_ends(void **state)
{
    struct control *c, *second;
    Actd__V1__ControlReply *m;
    int fd;

    (void)state;
    assert_int_equal(start(&c), 0);
    assert_int_equal(start(&second), -EADDRINUSE);
    assert_null(second);
    fd = client();
    ask_for(fd, 1, V(STATUS), "");
    m = wait_for_reply(fd);
    assert_true(m && m->result == R(OK) && m->status->ticks == 12345);
    ask_for(fd, 2, V(ESTOP), ""); // no loop: a refusal after 200 ms
    m = wait_for_reply(fd);
    assert_true(m && m->id == 2 && m->result == R(FAILED));
    control_stop(c);
    assert_true(closed(fd));
    close(fd);
    assert_int_equal(access(path, F_OK), -1);
    control_stop(NULL);
}

static void a_config_that_cannot_be_is_refused(void **state)
{
    struct control *c;

    (void)state;
    snprintf(w.cfg.operators.act, sizeof w.cfg.operators.act, "no-such-user\n");
    assert_int_equal(start(&c), -EINVAL);
    assert_non_null(strstr(err.text, "no-such-user"));
    w.cfg.operators.act[0] = '\0';
    snprintf(w.cfg.operators.socket, sizeof w.cfg.operators.socket, "/no/such/place");
    assert_int_equal(start(&c), -ENOENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, up, world_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_mode_is_what_is_asked_for),
        TEST(others_reach_it_only_when_they_are_named),
        TEST(a_living_socket_is_not_taken),
        TEST(one_whose_queue_is_full_lives_too),
        TEST(a_left_over_socket_gives_way),
        TEST(another_users_left_over_is_left),
        TEST(what_is_no_socket_is_never_removed),
        TEST(only_ours_is_removed),
        TEST(the_directory_must_be_ours_alone),
        TEST(the_thread_answers_and_ends),
        TEST(a_config_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
