// access: what the lists of the configuration become, and what the kernel says of a peer.
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/access.h"

#define ALICE 41001u // nobody on this machine
#define LAB   41002u
#define SELF  41003u

static struct config cfg;
static struct config_error err;

static int resolve(struct access *a, const char *act, const char *read)
{
    memset(&cfg, 0, sizeof cfg);
    snprintf(cfg.file, sizeof cfg.file, "r.yaml");
    snprintf(cfg.operators.act, sizeof cfg.operators.act, "%s", act);
    snprintf(cfg.operators.read, sizeof cfg.operators.read, "%s", read);
    err.text[0] = '\0';
    return access_resolve(a, &cfg, SELF, &err);
}

static void names_become_numbers(void **state)
{
    struct access a;

    (void)state;
    assert_int_equal(resolve(&a, "root\n@root\n41001\n", "@41002\ndaemon\n"), 0);
    assert_int_equal(a.n, 5);
    assert_false(a.only_presets);
    assert_true(!a.rule[0].group && a.rule[0].id == 0 && a.rule[0].right == ACCESS_ACT);
    assert_true(a.rule[1].group && a.rule[1].id == 0);
    assert_true(!a.rule[2].group && a.rule[2].id == ALICE);
    assert_true(a.rule[3].group && a.rule[3].id == LAB && a.rule[3].right == ACCESS_READ);
    assert_true(!a.rule[4].group && a.rule[4].id == 1); // Debian's daemon
    assert_int_equal(resolve(&a, "", ""), 0);
    assert_int_equal(a.n, 0);
}

static void unknown_names_are_refused_but_in_the_defaults(void **state)
{
    struct access a;

    (void)state;
    assert_int_equal(resolve(&a, "@actd-operators\n", "@actd-clients\n"), 0);
    assert_true(a.only_presets && a.n <= 2);
    assert_int_equal(resolve(&a, "no-such-user\n", ""), -EINVAL);
    assert_string_equal(err.text,
                        "r.yaml: operators.act: this machine knows no user "
                        "'no-such-user'; create it, or take it out of the list");
    assert_int_equal(resolve(&a, "", "root\n@no-such-group\n"), -EINVAL);
    assert_non_null(strstr(err.text, "operators.read: this machine knows no group "
                                     "'no-such-group'"));
    // The default of one list is an ordinary name in the other.
    if (!getgrnam("actd-clients"))
        assert_int_equal(resolve(&a, "@actd-clients\n", ""), -EINVAL);
}

// Where user namespaces hide who somebody is, he must not be everybody.
static void nobody_is_no_user(void **state)
{
    struct access a;
    gid_t none = ACCESS_NOBODY;

    (void)state;
    assert_int_equal(resolve(&a, "65534\n", ""), -EINVAL);
    assert_non_null(strstr(err.text, "another namespace"));
    assert_int_equal(resolve(&a, "", "@nogroup\n"), -EINVAL);
    assert_int_equal(resolve(&a, "nobody\n", ""), -EINVAL);
    a = (struct access){.self = ACCESS_NOBODY};
    assert_int_equal(access_of(&a, ACCESS_NOBODY, &none, 1), ACCESS_NONE);
}

static void rights_are_those_written_down(void **state)
{
    static const struct {
        uid_t uid;
        gid_t groups[3];
        int n;
        enum access_right right;
    } cases[] = {
        {0, {5}, 1, ACCESS_ACT},
        {0, {0}, 0, ACCESS_ACT},
        {SELF, {5}, 1, ACCESS_ACT},
        {ALICE, {5}, 1, ACCESS_READ},
        {ALICE, {5, 7, LAB}, 3, ACCESS_ACT}, // the better of two
        {77, {5, LAB}, 2, ACCESS_ACT},
        {77, {5, LAB + 1}, 2, ACCESS_NONE},
        {77, {ALICE}, 1, ACCESS_NONE}, // a group of a user's number
        {LAB, {5}, 1, ACCESS_NONE},    // and a user of a group's
        {ACCESS_NOBODY, {ACCESS_NOBODY}, 1, ACCESS_NONE},
        {77, {0}, 0, ACCESS_NONE},
        {77, {0}, 1, ACCESS_NONE}, // root's group is not root
    };
    struct access a;

    (void)state;
    assert_int_equal(resolve(&a, "@41002\n", "41001\n"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (access_of(&a, cases[i].uid, cases[i].groups, cases[i].n) != cases[i].right)
            fail_msg("case %zu", i);
}

static void full_lists_fit(void **state)
{
    char act[CONFIG_LIST] = "", read[CONFIG_LIST] = "";
    struct access a;

    (void)state;
    for (int i = 0; i < 32; i++) {
        snprintf(act + strlen(act), sizeof act - strlen(act), "%d\n", 1000 + i);
        snprintf(read + strlen(read), sizeof read - strlen(read), "@%d\n", 2000 + i);
    }
    assert_int_equal(resolve(&a, act, read), 0);
    assert_int_equal(a.n, 64);
    assert_int_equal(access_of(&a, 1031, NULL, 0), ACCESS_ACT);
    assert_int_equal(access_of(&a, 9, &(gid_t){2031}, 1), ACCESS_READ);
}

// ---- the kernel's word ---------------------------------------------------------------

static void we_are_who_we_are(void **state)
{
    struct access a = {.self = geteuid()};
    struct access_peer peer;
    enum access_right right;
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
    assert_int_equal(access_look(&a, fd[0], &peer, &right), 0);
    assert_true(peer.uid == geteuid() && peer.pid == getpid() && peer.gid == getegid());
    assert_int_equal(right, ACCESS_ACT);
    close(fd[0]);
    close(fd[1]);
    assert_int_equal(access_look(&a, fd[0], &peer, &right), -EBADF);
    assert_int_equal(right, ACCESS_NONE);
}

// A child becomes uid with these groups, connects, and then becomes somebody else.
static pid_t child(const char *path, uid_t uid, gid_t gid, int n, const gid_t *groups)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (setgroups((size_t)n, groups) != 0 || setresgid(gid, gid, gid) != 0 ||
        setresuid(uid, 0, 0) != 0 || seteuid(uid) != 0 ||
        connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        _exit(1);
    if (setresuid(0, 0, 0) != 0) // too late to pass for root
        _exit(2);
    pause();
    _exit(0);
}

static void look_at(int listening, const struct access *a, pid_t pid,
                    struct access_peer *peer, enum access_right *right)
{
    int fd = accept(listening, NULL, NULL);

    assert_true(fd >= 0);
    assert_int_equal(access_look(a, fd, peer, right), 0);
    close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void another_user_is_who_he_was_when_he_connected(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    gid_t many[3000];
    struct access_peer peer;
    enum access_right right;
    struct access a;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    (void)state;
    if (geteuid() != 0) {
        print_message("SKIP another_user_is_who_he_was_when_he_connected: needs root\n");
        skip();
    }
    for (int i = 0; i < 3000; i++)
        many[i] = (gid_t)(50000 + i);
    snprintf(at.sun_path, sizeof at.sun_path, "/tmp/test_access.%d", (int)getpid());
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(chmod(at.sun_path, 0666), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(resolve(&a, "@52999\n", "@41002\n41001\n"), 0);
    look_at(fd, &a, child(at.sun_path, 65534, 65534, 0, many), &peer, &right);
    assert_true(peer.uid == 65534 && right == ACCESS_NONE);
    look_at(fd, &a, child(at.sun_path, ALICE, 5, 0, many), &peer, &right);
    assert_true(peer.uid == ALICE && peer.gid == 5 && right == ACCESS_READ);
    // By the main group, by a further one, and by the last of three thousand.
    look_at(fd, &a, child(at.sun_path, 77, LAB, 0, many), &peer, &right);
    assert_int_equal(right, ACCESS_READ);
    look_at(fd, &a, child(at.sun_path, 77, 5, 2, (gid_t[]){6, LAB}), &peer, &right);
    assert_int_equal(right, ACCESS_READ);
    look_at(fd, &a, child(at.sun_path, 77, 5, 3000, many), &peer, &right);
    assert_int_equal(right, ACCESS_ACT);
    look_at(fd, &a, child(at.sun_path, 77, 5, 2999, many), &peer, &right);
    assert_int_equal(right, ACCESS_NONE);
    close(fd);
    unlink(at.sun_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_numbers),
        cmocka_unit_test(unknown_names_are_refused_but_in_the_defaults),
        cmocka_unit_test(nobody_is_no_user),
        cmocka_unit_test(rights_are_those_written_down),
        cmocka_unit_test(full_lists_fit),
        cmocka_unit_test(we_are_who_we_are),
        cmocka_unit_test(another_user_is_who_he_was_when_he_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
