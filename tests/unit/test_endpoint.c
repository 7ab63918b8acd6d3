// Who may have an address: nothing that lives is robbed, nothing that is not ours is
// removed.
#include <pthread.h>

#include "daemon/endpoint.h"
#include "tests/unit/bus_fixture.h"

// Another bus with its own board; cameras are none.
struct rival {
    struct config cfg;
    struct config_error err;
    struct board board;
    struct bus *bus;
};

static void rival_init(struct rival *r, const char *runtime)
{
    make_config(&r->cfg, runtime);
    r->cfg.n_cameras = 0;
    r->bus = NULL;
    assert_int_equal(board_init(&r->board, 0, 4, JOINTS), 0);
}

static int rival_start(struct rival *r)
{
    int lock_fd, e = endpoint_lock(r->cfg.runtime, &lock_fd, &r->err);

    return e ? e : bus_start(&r->bus, &r->cfg, &r->board, NULL, 0, lock_fd, &r->err);
}

static void unharmed(struct fixture *f)
{
    static int position = 1000;

    send_joints(f, ++position);
    EVENTUALLY(newest_position(f) == position);
    assert_true(push_command(f, 7));
    assert_int_equal(next_command(f->commands, 5000), 7);
}

static void test_second_instance_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rival r;
    char pid[32];

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    rival_init(&r, f->cfg.runtime);
    assert_int_equal(rival_start(&r), -EBUSY);
    assert_null(r.bus);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_non_null(strstr(r.err.text, pid));
    assert_non_null(strstr(r.err.text, f->cfg.runtime));
    unharmed(f);
    bus_stop(f->bus); // and once it has gone, the other may
    f->bus = NULL;
    assert_int_equal(rival_start(&r), 0);
    bus_stop(r.bus);
    board_free(&r.board);
}

// Another runtime directory, but one endpoint of the first.
static void test_living_endpoint_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rival r;
    char other[64];

    assert_int_equal(start(f), 0);
    connect_all(f);
    connect_commands(f);
    snprintf(other, sizeof other, "%.50s-b", f->cfg.runtime);
    rival_init(&r, other);
    strcpy(r.cfg.joint_state.endpoint, f->cfg.joint_state.endpoint);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rival_start(&r), -EADDRINUSE);
        assert_non_null(strstr(r.err.text, "joints.state is in use"));
    }
    unharmed(f);
    board_free(&r.board);
}

static void must_keep(struct fixture *f, const char *path, mode_t type)
{
    struct stat st;

    assert_int_equal(start(f), -EEXIST);
    assert_null(f->bus);
    assert_non_null(strstr(f->err.text, path));
    assert_non_null(strstr(f->err.text, "not a socket"));
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & S_IFMT, type);
}

static void test_what_is_no_socket_stays(void **state)
{
    struct fixture *f = *state;
    const char *path = endpoint_path(f->cfg.joint_state.endpoint);
    char text[8] = "";
    int fd;

    assert_int_equal(start(f), 0); // makes the directories
    bus_stop(f->bus);
    fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(fd, "data", 4), 4);
    must_keep(f, path, S_IFREG);
    assert_int_equal(pread(fd, text, 4, 0), 4);
    assert_string_equal(text, "data");
    close(fd);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    must_keep(f, path, S_IFDIR);
    rmdir(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    must_keep(f, path, S_IFLNK);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    must_keep(f, path, S_IFIFO);
}

// A socket bound and closed again leaves its file, as a killed daemon does.
static void test_stale_socket_is_replaced(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd;

    assert_int_equal(start(f), 0);
    bus_stop(f->bus);
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s",
             endpoint_path(f->cfg.joint_state.endpoint));
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(start(f), -EADDRINUSE); // still answered
    assert_int_equal(access(a.sun_path, F_OK), 0);
    close(fd);
    assert_int_equal(access(a.sun_path, F_OK), 0);
    assert_int_equal(start(f), 0);
    connect_all(f);
    send_joints(f, 6);
    EVENTUALLY(newest_position(f) == 6);
}

static void test_modes_and_removal(void **state)
{
    struct fixture *f = *state;
    const char *joints = endpoint_path(f->cfg.joint_state.endpoint);
    const char *commands = endpoint_path(f->cfg.joint_command.endpoint);
    mode_t before = umask(0);
    struct stat st;
    int fd;

    assert_int_equal(start(f), 0);
    assert_int_equal(umask(before), 0); // as it was
    assert_int_equal(stat(f->cfg.runtime, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    assert_int_equal(stat(joints, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    // Somebody has put something else in a socket's place: it is not ours to remove.
    unlink(commands);
    fd = open(commands, O_CREAT | O_RDWR, 0600);
    close(fd);
    bus_stop(f->bus);
    f->bus = NULL;
    assert_int_equal(access(joints, F_OK), -1);
    print_message("a stranger's file at a bound path: %s\n",
                  access(commands, F_OK) == 0 ? "kept" : "removed by libzmq");
}

static void test_runtime_directory(void **state)
{
    struct fixture *f = *state;
    char long_path[CONFIG_PATH];
    int fd;

    assert_int_equal(start(f), 0);
    bus_stop(f->bus);
    f->bus = NULL;
    assert_int_equal(chmod(f->cfg.runtime, 0777), 0);
    assert_int_equal(endpoint_lock(f->cfg.runtime, &fd, &f->err), -EPERM);
    assert_non_null(strstr(f->err.text, "0750"));
    assert_int_equal(chmod(f->cfg.runtime, 0700), 0);
    assert_int_equal(endpoint_lock(f->cfg.runtime, &fd, &f->err), 0);
    close(fd);
    snprintf(long_path, sizeof long_path, "%.60s/lock", f->cfg.runtime); // a regular file
    assert_int_equal(endpoint_lock(long_path, &fd, &f->err), -ENOTDIR);
    snprintf(long_path, sizeof long_path, "%.60s/lock/under", f->cfg.runtime);
    assert_int_equal(endpoint_lock(long_path, &fd, &f->err), -ENOTDIR);
    assert_int_equal(endpoint_lock("relative/path", &fd, &f->err), -EINVAL);
    assert_int_equal(endpoint_lock("", &fd, &f->err), -EINVAL);
    snprintf(long_path, sizeof long_path, "%.60s/link", f->cfg.runtime);
    assert_int_equal(symlink("/tmp", long_path), 0);
    assert_int_equal(endpoint_lock(long_path, &fd, &f->err), -ENOTDIR);
    assert_int_equal(fd, -1);
}

static void test_addresses(void **state)
{
    struct fixture *f = *state;
    char longest[200] = "ipc:///tmp/", full[600];
    const struct {
        const char *endpoint;
        int want;
    } cases[] = {
        {"tcp://127.0.0.1:5555", 0},
        {"tcp://127.1.2.3:1", 0},
        {"tcp://0.0.0.0:5555", -EINVAL},
        {"tcp://*:5555", -EINVAL},
        {"tcp://192.168.1.2:5555", -EINVAL},
        {"tcp://127.0.0.1.example.org:5555", -EINVAL},
        {"tcp://127.0.0.1", -EINVAL},
        {"tcp://127.0.0.1:", -EINVAL},
        {"tcp://127.0.0.1:*", -EINVAL},
        {"tcp://localhost:5555", -EINVAL},
        {"ipc://relative", -EINVAL},
        {"ipc://@abstract", -EINVAL},
        {"ipc://*", -EINVAL},
        {"ipc://", -EINVAL},
        {"inproc://x", -EINVAL},
        {"/tmp/x", -EINVAL},
        {"", -EINVAL},
        {"ipc:///nonexistent/x", 0}, // free; the bind then names it
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int bind = 0; bind < 2; bind++) {
            assert_int_equal(endpoint_check(cases[i].endpoint, bind, &f->err),
                             cases[i].want);
            if (cases[i].want != 0)
                assert_non_null(strstr(f->err.text, cases[i].endpoint));
        }
    memset(longest + 11, 'x', 6 + 107 - 11);
    longest[6 + 107] = '\0';
    assert_int_equal(endpoint_check(longest, true, &f->err), 0);
    memcpy(longest + 6 + 107, "x", 2);
    assert_int_equal(endpoint_check(longest, true, &f->err), -ENAMETOOLONG);
    assert_non_null(strstr(f->err.text, "108"));
    snprintf(full, sizeof full, "ipc:///nonexistent/%s", "x");
    strcpy(f->cfg.joint_state.endpoint, full);
    assert_int_equal(start(f), -ENOENT);
    assert_non_null(strstr(f->err.text, full));
    assert_null(f->bus);
}

// The driver binds, actd connects, over TCP: the other way round works too.
static void test_connect_over_tcp(void **state)
{
    struct fixture *f = *state;
    char endpoint[64], subscription[8];
    size_t size = sizeof endpoint;

    f->joints = zmq_socket(f->context, ZMQ_XPUB);
    assert_int_equal(zmq_bind(f->joints, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(f->joints, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    strcpy(f->cfg.joint_state.endpoint, endpoint);
    f->cfg.joint_state.bind = false;
    assert_int_equal(start(f), 0);
    assert_int_equal(zmq_recv(f->joints, subscription, sizeof subscription, 0), 1);
    send_joints(f, 8);
    EVENTUALLY(newest_position(f) == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_second_instance_is_refused),
        TEST(test_living_endpoint_is_refused),
        TEST(test_what_is_no_socket_stays),
        TEST(test_stale_socket_is_replaced),
        TEST(test_modes_and_removal),
        TEST(test_runtime_directory),
        TEST(test_addresses),
        TEST(test_connect_over_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
