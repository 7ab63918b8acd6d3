// Names inside swap.directory: what may be opened, what is listed, and what is said of
// the rest.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/swap_impl.h"

struct place {
    struct config cfg;
    char base[64]; // of everything; swap.directory is base/policies
    struct config_error err;
    char path[CONFIG_PATH];
};

static const char *in(const struct place *p, const char *name)
{
    static char buf[2][512];
    static int turn;
    turn = !turn;
    snprintf(buf[turn], sizeof buf[turn], "%s/%s", p->base, name);
    return buf[turn];
}

static void make_file(const struct place *p, const char *name, const char *text)
{
    FILE *f = fopen(in(p, name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_policy(const struct place *p, const char *name)
{
    static const char *const file[] = {"config.json", "policy.yaml", "model.safetensors"};
    char path[128];
    assert_int_equal(mkdir(in(p, name), 0755), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", name, file[i]);
        make_file(p, path, "12345");
    }
}

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    *state = p;
    (void)umask(022);
    snprintf(p->base, sizeof p->base, "/tmp/actd-swap.XXXXXX");
    if (!mkdtemp(p->base) || mkdir(in(p, "policies"), 0755))
        return -1;
    snprintf(p->cfg.swap.directory, CONFIG_PATH, "%s/policies", p->base);
    snprintf(p->cfg.file, CONFIG_PATH, "robot.yaml");
    make_policy(p, "policies/reach");
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", p->base);
    int rc = system(command);
    free(p);
    return rc;
}

// True when it opens, and the path is what people call it.
static bool opens(struct place *p, const char *name, const char *path)
{
    p->err.text[0] = '\0';
    int fd = swap_open(&p->cfg, name, p->path, &p->err);
    struct stat a, b;
    if (fd < 0)
        return false;
    assert_int_equal(fstat(fd, &a), 0);
    assert_int_equal(stat(in(p, path), &b), 0);
    close(fd);
    assert_string_equal(p->path, in(p, path));
    return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static void refuses(struct place *p, const char *name, const char *part)
{
    int before = open("/dev/null", O_RDONLY), after;
    assert_false(opens(p, name, "policies"));
    if (!strstr(p->err.text, part))
        fail_msg("'%s' is not in: %s", part, p->err.text);
    after = open("/dev/null", O_RDONLY);
    assert_int_equal(after, before + 1); // nothing stays open
    close(before);
    close(after);
}

static void by_name(void **state)
{
    struct place *p = *state;
    assert_true(opens(p, "reach", "policies/reach"));
    refuses(p, "nothing", "there is no policy nothing");
    p->cfg.swap.directory[0] = '\0';
    refuses(p, "reach", "set swap.directory in robot.yaml");
    snprintf(p->cfg.swap.directory, CONFIG_PATH, "/nowhere/at/all");
    refuses(p, "reach", "/nowhere/at/all cannot be opened");
}

static void no_way_out(void **state)
{
    struct place *p = *state;
    make_policy(p, "outside");
    assert_int_equal(symlink("../outside", in(p, "policies/link")), 0);
    assert_int_equal(symlink("reach", in(p, "policies/alias")), 0);
    make_file(p, "policies/plain", "x");
    static const char *const bad[] = {
        "..", ".", "", "../outside", "reach/../../outside", "/etc", "reach/", ".reach"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(p, bad[i], "no name of a policy");
    char longest[CONFIG_NAME + 1];
    memset(longest, 'a', sizeof longest);
    longest[CONFIG_NAME] = '\0';
    refuses(p, longest, "no name of a policy");
    longest[CONFIG_NAME - 1] = '\0';
    refuses(p, longest, "there is no policy");
    refuses(p, "link", "link is a symbolic link");
    refuses(p, "alias", "alias is a symbolic link");
    refuses(p, "plain", "plain is a symbolic link or no directory");
}

static void nobody_else_may_write_the_way(void **state)
{
    struct place *p = *state;
    chmod(in(p, "policies/reach"), 0775);
    refuses(p, "reach", "the directory reach can be written by others");
    chmod(in(p, "policies/reach"), 0757);
    refuses(p, "reach", "chmod go-w");
    chmod(in(p, "policies/reach"), 0755);
    chmod(in(p, "policies"), 0777);
    refuses(p, "reach", "policies can be written by others");
    chmod(in(p, "policies"), 0755);
    assert_true(opens(p, "reach", "policies/reach"));
    if (geteuid() != 0)
        return; // only root can give away
    assert_int_equal(chown(in(p, "policies/reach"), 12345, 0), 0);
    refuses(p, "reach", "belongs to another user");
}

static void lerobots_layout(void **state)
{
    struct place *p = *state;
    assert_int_equal(mkdir(in(p, "policies/run7"), 0755), 0);
    make_policy(p, "policies/run7/pretrained_model");
    assert_true(opens(p, "run7", "policies/run7/pretrained_model"));
    chmod(in(p, "policies/run7/pretrained_model"), 0777);
    refuses(p, "run7", "pretrained_model can be written by others");
    chmod(in(p, "policies/run7/pretrained_model"), 0755);
    make_file(p, "policies/run7/config.json", "{}"); // then it is one itself
    assert_true(opens(p, "run7", "policies/run7"));
    assert_int_equal(mkdir(in(p, "policies/run8"), 0755), 0);
    assert_int_equal(
        symlink("../run7/pretrained_model", in(p, "policies/run8/pretrained_model")), 0);
    assert_true(opens(p, "run8", "policies/run8")); // the link is not followed
}

static const struct swap_entry *find(const struct swap_entry *e, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(e[i].name, name) == 0)
            return &e[i];
    fail_msg("%s is not listed", name);
    return NULL;
}

static void lists(void **state)
{
    struct place *p = *state;
    struct swap_entry e[16];
    make_policy(p, "policies/zeta");
    make_policy(p, "policies/alpha");
    make_policy(p, "policies/.hidden");
    make_file(p, "policies/readme", "x");
    make_policy(p, "policies/open");
    chmod(in(p, "policies/open/model.safetensors"), 0666);
    make_policy(p, "policies/lacks");
    unlink(in(p, "policies/lacks/policy.yaml"));
    make_policy(p, "policies/linked");
    unlink(in(p, "policies/linked/config.json"));
    assert_int_equal(
        symlink("../alpha/config.json", in(p, "policies/linked/config.json")), 0);
    assert_int_equal(symlink("alpha", in(p, "policies/mirror")), 0);
    int n = swap_files_list(&p->cfg, e, 0, 16);
    assert_int_equal(n, 7);
    for (int i = 1; i < n; i++)
        assert_true(strcmp(e[i - 1].name, e[i].name) < 0);
    const struct swap_entry *a = find(e, n, "alpha");
    assert_true(a->usable && a->bytes == 5 && a->modified_s > 1600000000);
    assert_string_equal(a->note, "");
    assert_true(find(e, n, "zeta")->usable && find(e, n, "reach")->usable);
    a = find(e, n, "open");
    assert_false(a->usable);
    assert_string_equal(a->note,
                        "model.safetensors can be written by others than its owner: "
                        "chmod go-w");
    a = find(e, n, "lacks");
    assert_false(a->usable);
    assert_string_equal(a->note, "policy.yaml is missing");
    assert_string_equal(find(e, n, "linked")->note, "config.json is not a regular file");
    a = find(e, n, "mirror");
    assert_true(!a->usable && strstr(a->note, "symbolic link"));
    assert_int_equal(swap_files_list(&p->cfg, e, 0, 3), 3); // no more than there is room
    assert_int_equal(swap_files_list(&p->cfg, e, 2, 16),
                     9); // behind those that are there
    snprintf(p->cfg.swap.directory, CONFIG_PATH, "/nowhere/at/all");
    assert_int_equal(swap_files_list(&p->cfg, e, 0, 16), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

// ---- what was refused ------------------------------------------------------------------------

static void a_stamp_is_of_every_file(void **state)
{
    struct place *p = *state;
    uint64_t was = swap_files_stamp(&p->cfg, "reach"), is;
    assert_true(was != 0);
    assert_int_equal(swap_files_stamp(&p->cfg, "reach"), was);
    assert_int_equal(swap_files_stamp(&p->cfg, "nothing"), 0);
    make_file(p, "policies/reach/model.safetensors", "123456"); // another size
    is = swap_files_stamp(&p->cfg, "reach");
    assert_true(is != was);
    was = is;
    const struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, in(p, "policies/reach/config.json"), t, 0), 0);
    is = swap_files_stamp(&p->cfg, "reach");
    assert_true(is != was);
    was = is;
    make_file(p, "policies/reach/golden.safetensors", "");
    assert_true(swap_files_stamp(&p->cfg, "reach") != was);
}

// A swap of `name` is over, with that result.
static void over(struct swap *s, const char *name, int result, const char *why)
{
    s->job = (struct swap_job){.stamp = swap_files_stamp(s->src.cfg, name)};
    s->job.report.number = ++s->number;
    s->job.report.result = result;
    snprintf(s->job.report.text, sizeof s->job.report.text, "%s", why);
    snprintf(s->job.request.name, CONFIG_NAME, "%s", name);
    swap_note(s);
}

static const char *note_of(struct swap *s, const char *name)
{
    static struct swap_entry e;
    e = (struct swap_entry){.usable = true};
    snprintf(e.name, sizeof e.name, "%s", name);
    swap_notes_tell(s, &e, 1);
    return e.note;
}

static void what_was_refused_is_told_until_it_changes(void **state)
{
    struct place *p = *state;
    struct swap *s = calloc(1, sizeof *s);
    char text[300], want[200];
    int hour, minute, n = 0;
    s->src.cfg = &p->cfg;
    assert_int_equal(pthread_mutex_init(&s->mutex, NULL), 0);
    assert_string_equal(note_of(s, "reach"), "");
    over(s, "reach", -EINVAL, "tensor model.x is missing");
    assert_int_equal(
        sscanf(note_of(s, "reach"), "refused at %2d:%2d: %n", &hour, &minute, &n), 2);
    assert_true(hour < 24 && minute < 60);
    assert_string_equal(note_of(s, "reach") + n, "tensor model.x is missing");
    assert_string_equal(note_of(s, "nothing"), "");
    over(s, "reach", -ECANCELED, "given up"); // that says nothing of it
    over(s, "reach", -EAGAIN, "no time");
    assert_string_equal(note_of(s, "reach") + n, "tensor model.x is missing");
    memset(text, 'x', sizeof text);
    memcpy(text + 119, "\xc3\xa9 and more", 11); // a character across byte 120
    text[sizeof text - 1] = '\0';
    over(s, "reach", -EDOM, text);
    snprintf(want, sizeof want, "%.119s", text);
    assert_string_equal(note_of(s, "reach") + n, want);
    make_file(p, "policies/reach/model.safetensors", "mended");
    assert_string_equal(note_of(s, "reach"), "");
    over(s, "reach", -EIO, "again");
    over(s, "reach", 0, "");
    assert_string_equal(note_of(s, "reach"), "");
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

// 40 policies are refused: the last 32 are remembered.
static void notes_are_bounded(void **state)
{
    struct place *p = *state;
    struct swap *s = calloc(1, sizeof *s);
    char name[CONFIG_NAME], path[CONFIG_NAME + 16];
    s->src.cfg = &p->cfg;
    assert_int_equal(pthread_mutex_init(&s->mutex, NULL), 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "p%d", i);
        snprintf(path, sizeof path, "policies/%s", name);
        make_policy(p, path);
        over(s, name, -EINVAL, name);
    }
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "p%d", i);
        assert_int_equal(note_of(s, name)[0] != '\0', i >= 8);
    }
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(by_name),
        TEST(no_way_out),
        TEST(nobody_else_may_write_the_way),
        TEST(lists),
        TEST(lerobots_layout),
        cmocka_unit_test_setup_teardown(a_stamp_is_of_every_file, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_refused_is_told_until_it_changes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(notes_are_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
