// ytree: positions, kinds, what is refused before and while libyaml sees it.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/ytree.h"

static struct ytree *good(const char *text)
{
    struct config_error err = {""};
    struct ytree *t = NULL;

    if (ytree_parse(&t, "f", text, strlen(text), &err))
        fail_msg("refused: %s", err.text);
    return t;
}

static void bad(const char *text, size_t n, const char *expected)
{
    struct config_error err = {""};
    struct ytree *t = NULL;

    assert_int_not_equal(ytree_parse(&t, "f", text, n, &err), 0);
    assert_null(t);
    if (strncmp(err.text, expected, strlen(expected)) != 0)
        fail_msg("expected '%s', got '%s'", expected, err.text);
}

#define BAD(text, expected) bad(text, sizeof(text) - 1, expected)

static void at(const struct ynode *n, int line, int column)
{
    assert_non_null(n);
    assert_int_equal(n->line, line);
    assert_int_equal(n->column, column);
}

static void every_value_knows_its_place(void **state)
{
    struct ytree *t =
        good("# c\na:\n  b: 1\n  'c d': [x, \"y z\", {k: v}]\n\xc3\xa9\xc3\xa9: z\n");
    const struct ynode *a = ynode_get(ytree_root(t), "a"), *list;

    (void)state;
    assert_int_equal(a->kind, YNODE_MAP);
    assert_int_equal(a->key_line, 2);
    assert_int_equal(a->n, 2);
    at(ynode_get(a, "b"), 3, 6);
    assert_string_equal(ynode_get(a, "b")->text, "1");
    list = ynode_get(a, "c d");
    at(list, 4, 10);
    assert_int_equal(list->n, 3);
    assert_true(list->child->plain);
    at(list->child->next, 4, 14);
    assert_false(list->child->next->plain);
    assert_string_equal(list->child->next->text, "y z");
    at(ynode_get(list->last, "k"), 4, 25);
    at(ynode_get(ytree_root(t), "\xc3\xa9\xc3\xa9"), 5, 5); // characters, not bytes
    assert_null(ynode_get(a, "k"));
    ytree_free(t);
}

static void bytes_are_checked_before_libyaml(void **state)
{
    static const char start[] = {'a', ':', ' ', '1', '\n'};
    static char big[YTREE_MAX_BYTES + 2];

    (void)state;
    BAD("", "f:1:1: the file is empty");
    BAD("# nothing\n", "f:1:1: the file is empty");
    BAD("\xef\xbb\xbf# a\n", "f:1:1: the file starts with a byte order mark");
    BAD("a: 1\nb: \0x\n", "f:2:4: control character");
    BAD("a: \x1b[2J\n", "f:1:4: control character");
    BAD("a: 1\nb: \xff\n", "f:2:4: not UTF-8");
    BAD("a: \xc0\xaf\n", "f:1:4: not UTF-8");         // overlong
    BAD("a: \xed\xa0\x80\n", "f:1:4: not UTF-8");     // surrogate
    BAD("a: \xf4\x90\x80\x80\n", "f:1:4: not UTF-8"); // above U+10FFFF
    BAD("a: \xe2\x82", "f:1:4: not UTF-8");           // cut short
    BAD("\xff\xfe#\0 \0x\0", "f:1:1: not UTF-8");
    memset(big, '#', sizeof big);
    bad(big, YTREE_MAX_BYTES + 1, "f:1:1: the file is larger than 64 KiB");
    memcpy(big, start, sizeof start);
    struct ytree *t = NULL;
    struct config_error err;
    assert_int_equal(ytree_parse(&t, "f", big, YTREE_MAX_BYTES, &err), 0);
    ytree_free(t);
}

static void tabs_are_called_tabs(void **state)
{
    (void)state;
    BAD("a:\n\tb: 1\n", "f:2:1: a tab; indent with spaces");
    BAD("a:\n  b: 1\n  \tc: 1\n", "f:3:3: a tab; indent with spaces");
    ytree_free(good("a:\t1 # as a space\n"));
}

static void sixteen_levels_and_no_more(void **state)
{
    char text[200] = "a: ";

    (void)state;
    memset(text + 3, '[', 15); // the mapping is the first level
    memset(text + 18, ']', 15);
    ytree_free(good(text));
    memset(text + 3, '[', 16);
    memset(text + 19, ']', 16);
    bad(text, strlen(text), "f:1:19: nested more than 16 levels deep");
}

static void deep_nesting_costs_nothing(void **state)
{
    static char text[YTREE_MAX_BYTES];
    static const char *const fill[] = {"[", "{", "? ", "- ", "[\n", "a: [", "{a: "};
    struct timespec t0, t1;

    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (size_t k = 0; k < sizeof fill / sizeof *fill; k++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = fill[k][i % strlen(fill[k])];
        bad(text, sizeof text, "f:");
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    double s = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    assert_true(s < 2.0); // measured 3 ms; libyaml left alone takes over 10 s for each
}

static void wide_mappings_are_refused(void **state)
{
    char text[4096] = "";
    size_t n = 0;

    (void)state;
    for (int i = 0; i < YTREE_MAX_ENTRIES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "k%d: 1\n", i);
    ytree_free(good(text));
    snprintf(text + n, sizeof text - n, "last: 1\n");
    bad(text, strlen(text), "f:257:1: more than 256 entries");
}

static void errors_carry_no_control_characters(void **state)
{
    (void)state;
    BAD("\"a\\e[31m\": 1\n", "f:1:1: control character");
    BAD("\"a\\x85\": 1\n\"a\\x85\": 2\n", "f:2:1: a\xc2\x85: duplicate key");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void files_that_everybody_may_write_are_refused(void **state)
{
    char dir[] = "/tmp/actd-yaml-XXXXXX", path[64];
    struct config_error err;
    struct ytree *t = NULL;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a.yaml", dir);
    assert_int_equal(ytree_load(&t, path, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    write_file(path, "a: 1\n", 0644);
    assert_int_equal(ytree_load(&t, path, &err), 0);
    assert_string_equal(ytree_file(t), path);
    ytree_free(t);
    write_file(path, "a: 1\n", 0666);
    assert_int_equal(ytree_load(&t, path, &err), -EINVAL);
    assert_non_null(strstr(err.text, "chmod o-w"));
    assert_int_equal(ytree_load(&t, dir, &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
    if (geteuid() == 0) {
        write_file(path, "a: 1\n", 0644);
        assert_int_equal(chown(path, 12345, 12345), 0);
        unsetenv("SUDO_UID");
        assert_int_equal(ytree_load(&t, path, &err), -EINVAL);
        assert_non_null(strstr(err.text, "belongs to another user"));
        setenv("SUDO_UID", "12345", 1);
        assert_int_equal(ytree_load(&t, path, &err), 0);
        ytree_free(t);
        unsetenv("SUDO_UID");
    }
    unlink(path);
    rmdir(dir);
}

static void an_endless_file_is_read_to_the_cap_only(void **state)
{
    struct config_error err;
    struct ytree *t = NULL;

    (void)state;
    assert_int_equal(ytree_load(&t, "/dev/zero", &err), -EINVAL);
    assert_non_null(strstr(err.text, "not a regular file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_knows_its_place),
        cmocka_unit_test(bytes_are_checked_before_libyaml),
        cmocka_unit_test(tabs_are_called_tabs),
        cmocka_unit_test(sixteen_levels_and_no_more),
        cmocka_unit_test(deep_nesting_costs_nothing),
        cmocka_unit_test(wide_mappings_are_refused),
        cmocka_unit_test(errors_carry_no_control_characters),
        cmocka_unit_test(files_that_everybody_may_write_are_refused),
        cmocka_unit_test(an_endless_file_is_read_to_the_cap_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
