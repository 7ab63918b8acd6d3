// Reading a file in one pass: every value where it was wanted, whoever asked in what order; the
// file's sum; and what stops it. Beside it the search for values that are not finite.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "policy/finite.h"
#include "policy/safetensors.h"
#include "tests/unit/st_fixture.h"

static char path[] = "/tmp/actd-wanted-XXXXXX";

static int make_path(void **unused)
{
    (void)unused;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **unused)
{
    (void)unused;
    return unlink(path);
}

static void sha256sum(char hex[65])
{
    char command[100];
    snprintf(command, sizeof command, "sha256sum %s", path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fread(hex, 1, 64, p), 64);
    hex[64] = 0;
    pclose(p);
}

// Sizes about the block of 128 KiB: 32768 floats, 65536 halves.
static const struct {
    const char *name;
    enum stf_store store;
    int n;
} tensors[] = {
    {"t.zero", STF_F32, 1},      {"t.one", STF_F32, 32767},  {"t.two", STF_F32, 32768},
    {"t.three", STF_F32, 32769}, {"t.four", STF_F16, 65537}, {"t.five", STF_BF16, 65536},
    {"t.six", STF_F32, 131080},  {"t.seven", STF_BF16, 3},   {"t.eight", STF_F16, 200000},
    {"t.nine", STF_F32, 40000},
};
#define N (sizeof tensors / sizeof *tensors)

// A value of eight significant bits at most, which all three types hold.
static float value(size_t i, size_t k)
{
    return (float)((int)((i * 7919 + k * 31) % 255) - 127) / 64.0f;
}

static struct st_file *make_file(void)
{
    struct policy_error err;
    struct st_file *file;
    struct stf f;
    stf_begin(&f);
    stf_meta(&f, "other.name", "t.three"); // an alias
    for (size_t i = 0; i < N; i++) {
        float *v = malloc((size_t)tensors[i].n * sizeof *v);
        assert_non_null(v);
        for (int k = 0; k < tensors[i].n; k++)
            v[k] = value(i, (size_t)k);
        stf_add(&f, tensors[i].name, tensors[i].store, 1, &tensors[i].n, v);
        free(v);
    }
    stf_save(&f, path);
    if (st_open(&file, path, &err))
        fail_msg("%s", err.text);
    return file;
}

static void test_whatever_the_order(void **unused)
{
    (void)unused;
    struct st_file *file = make_file();
    float *dst[N], *again = malloc(32769 * sizeof *again);
    char expected[65];
    sha256sum(expected);
    assert_non_null(again);
    for (size_t i = 0; i < N; i++) {
        dst[i] = malloc(((size_t)tensors[i].n + 1) * sizeof **dst);
        assert_non_null(dst[i]);
    }
    for (unsigned mask = 0; mask < 1024; mask += mask < 16 ? 1 : 37) {
        struct st_want want[N + 1];
        struct policy_error err = {""};
        char hex[65] = "";
        size_t n = 0;
        for (size_t i = 0; i < N; i++) {
            size_t k = (i * 7 + mask) % N; // another order each time
            dst[k][0] = dst[k][tensors[k].n] = 99;
            if (mask >> k & 1)
                want[n++] = (struct st_want){.tensor = st_find(file, tensors[k].name),
                                             .dst = dst[k],
                                             .n = (size_t)tensors[k].n};
        }
        want[n++] = (struct st_want){
            .tensor = st_find(file, "other.name"), .dst = again, .n = 32769};
        if (st_read_wanted(file, want, n, NULL, hex, &err))
            fail_msg("%s", err.text);
        assert_string_equal(hex, expected); // whatever is wanted, all of it is hashed
        for (size_t i = 0; i < N; i++) {
            assert_true(dst[i][tensors[i].n] == 99);
            if (!(mask >> i & 1))
                assert_true(dst[i][0] == 99);
            for (int k = 0; mask >> i & 1 && k < tensors[i].n; k++)
                if (dst[i][k] != value(i, (size_t)k))
                    fail_msg("%s[%d]", tensors[i].name, k);
        }
        for (size_t k = 0; k < 32769; k++)
            if (again[k] != value(3, k))
                fail_msg("alias [%zu]", k);
    }
    for (size_t i = 0; i < N; i++)
        free(dst[i]);
    free(again);
    st_close(file);
}

static void expect(int got, int rc, const struct policy_error *err, const char *says)
{
    if (got != rc || !strstr(err->text, says))
        fail_msg("%d: %s", got, err->text);
}

static void unused_statistics_may_be_infinite(float *v, int n)
{
    struct policy_error err = {""};
    struct st_file *file;
    struct stf f;
    char hex[65];
    v[5] = INFINITY;
    stf_begin(&f);
    stf_add(&f, "normalize_inputs.buffer_observation_state.mean", STF_F32, 1, &n, v);
    stf_add(&f, "unnormalize_outputs.buffer_action.std", STF_F32, 1, &n, v);
    stf_save(&f, path);
    assert_int_equal(st_open(&file, path, &err), 0);
    assert_int_equal(st_read_wanted(file, NULL, 0, NULL, hex, &err), 0);
    st_close(file);
}

static void test_not_finite(void **unused)
{
    (void)unused;
    static const int n = 100000;
    static const size_t at[] = {0, 32767, 32768, 99999};
    float *v = calloc((size_t)n, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < 4; i++)
        for (int store = 0; store < 3; store++) {
            struct policy_error err = {""};
            struct st_file *file;
            struct stf f;
            char hex[65], index[40];
            v[at[i]] = i & 1 ? -INFINITY : INFINITY;
            stf_begin(&f);
            stf_add(&f, "model.good", STF_F32, 1, &n, NULL);
            stf_add(&f, "model.w", (enum stf_store)store, 1, &n, v);
            stf_save(&f, path);
            v[at[i]] = 0;
            assert_int_equal(st_open(&file, path, &err), 0);
            float *dst = malloc((size_t)n * sizeof *dst);
            struct st_want want = {
                .tensor = st_find(file, "model.w"), .dst = dst, .n = (size_t)n};
            snprintf(index, sizeof index, "at index %zu:", at[i]);
            int rc = st_read_wanted(file, &want, 1, NULL, hex, &err);
            expect(rc, -EINVAL, &err, index);
            expect(rc, -EINVAL, &err, "'model.w'");
            rc = st_read_wanted(file, &want, 0, NULL, hex, &err); // nobody wants it
            expect(rc, -EINVAL, &err, index);
            expect(rc, -EINVAL, &err, "'model.w'");
            free(dst);
            st_close(file);
        }
    unused_statistics_may_be_infinite(v, n);
    free(v);
}

static void test_stopped(void **unused)
{
    (void)unused;
    struct policy_error err = {""};
    struct st_file *file = make_file();
    atomic_bool cancel = true;
    float *dst = malloc(131080 * sizeof *dst);
    struct st_want want = {.tensor = st_find(file, "t.six"), .dst = dst, .n = 131080};
    char hex[65];
    assert_non_null(dst);
    expect(st_read_wanted(file, &want, 1, &cancel, hex, &err), -ECANCELED, &err,
           "cancelled");
    cancel = false;
    assert_int_equal(st_read_wanted(file, &want, 1, &cancel, hex, &err), 0);
    want.n = 131079;
    expect(st_read_wanted(file, &want, 1, NULL, hex, &err), -EINVAL, &err,
           "has 131080 values, not 131079");
    want.n = 131080;
    FILE *f = fopen(path, "ab");
    assert_non_null(f);
    fputc(0, f);
    fclose(f);
    expect(st_read_wanted(file, &want, 1, NULL, hex, &err), -ESTALE, &err, "changed");
    st_close(file);
    file = make_file();
    want.tensor = st_find(file, "t.six");
    assert_int_equal(truncate(path, 1000), 0);
    expect(st_read_wanted(file, &want, 1, NULL, hex, &err), -ESTALE, &err, "");
    st_close(file);
    free(dst);
}

static void test_finite_prefix(void **unused)
{
    (void)unused;
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float x[40];
    for (size_t i = 0; i < 40; i++)
        x[i] = i % 3 ? 3.4e38f : i % 2 ? -1e-45f : 0.0f; // largest, smallest, none
    for (size_t from = 0; from < 4; from++)
        for (size_t n = 0; n + from <= 40; n++) {
            assert_int_equal(finite_prefix(x + from, n), n);
            for (size_t at = 0; at < n; at++)
                for (size_t b = 0; b < 4; b++) {
                    float good = x[from + at], next = x[39];
                    x[from + at] = bad[b];
                    assert_int_equal(finite_prefix(x + from, n), at);
                    x[39] = NAN; // a second one changes nothing
                    assert_int_equal(finite_prefix(x + from, n), at);
                    x[39] = next;
                    x[from + at] = good;
                }
        }
}

// ---- values that are only passing through -----------------------------------------------

struct passing {
    float *room; // all tensors use it in turn
    size_t i;    // which of them this is
    int begun, done;
    bool refuse;
};

static float *begin(void *arg, size_t n)
{
    struct passing *p = arg;
    assert_int_equal(n, tensors[p->i].n);
    assert_int_equal(p->begun++, 0);
    return p->refuse ? NULL : p->room;
}

static void done(void *arg, float *values)
{
    struct passing *p = arg;
    assert_int_equal(p->done++, 0);
    for (int k = 0; k < tensors[p->i].n; k++)
        if (values[k] != value(p->i, (size_t)k))
            fail_msg("%s[%d]", tensors[p->i].name, k);
}

static struct st_want passing_want(struct st_file *file, struct passing *p, size_t i)
{
    p->i = i;
    return (struct st_want){.tensor = st_find(file, tensors[i].name),
                            .n = (size_t)tensors[i].n,
                            .begin = begin,
                            .done = done,
                            .arg = p};
}

// All through the same memory; t.six is wanted twice more, by one who keeps it and by one who
// looks: who says first where it goes does not matter.
static void test_passing_through(void **unused)
{
    (void)unused;
    struct st_file *file = make_file();
    float *room = malloc(200000 * sizeof *room), *kept = malloc(131080 * sizeof *kept);
    char hex[65], expected[65];
    sha256sum(expected);
    assert_non_null(room);
    assert_non_null(kept);
    for (int turn = 0; turn < 3; turn++) {
        struct passing p[N + 1] = {{0}};
        struct policy_error err = {""};
        struct st_want want[N + 2], first;
        for (size_t i = 0; i < N; i++) {
            p[i].room = room;
            want[i] = passing_want(file, &p[i], i);
        }
        want[N] = (struct st_want){.tensor = want[6].tensor, .dst = kept, .n = 131080};
        p[N].room = room;
        want[N + 1] = passing_want(file, &p[N], 6);
        first = want[0]; // another order each time
        want[0] = want[N + (size_t)turn % 2];
        want[N + (size_t)turn % 2] = first;
        memset(kept, 0, 131080 * sizeof *kept);
        if (st_read_wanted(file, want, N + 2, NULL, hex, &err))
            fail_msg("%s", err.text);
        assert_string_equal(hex, expected);
        for (size_t i = 0; i <= N; i++)
            assert_int_equal(p[i].done, 1);
        assert_true(p[6].begun + p[N].begun <= 1);
        for (size_t k = 0; k < 131080; k++)
            if (kept[k] != value(6, k))
                fail_msg("t.six[%zu]", k);
    }
    free(room);
    free(kept);
    st_close(file);
}

// What is not finite, or has no room, is never handed over; what came before was.
static void test_not_handed_over(void **unused)
{
    (void)unused;
    struct st_file *file = make_file();
    float *room = malloc(200000 * sizeof *room);
    struct passing p[3] = {
        {.room = room}, {.room = room, .refuse = true}, {.room = room}};
    struct st_want want[3];
    struct policy_error err = {""};
    char hex[65];
    for (size_t i = 0; i < 3; i++)
        want[i] = passing_want(file, &p[i], i);
    expect(st_read_wanted(file, want, 3, NULL, hex, &err), -ENOMEM, &err, "'t.one'");
    assert_int_equal(p[0].done, 1);
    assert_int_equal(p[1].done, 0);
    assert_int_equal(p[2].begun, 0);
    st_close(file);

    float bad[2] = {0, NAN};
    struct stf f;
    stf_begin(&f);
    stf_add(&f, "t.two", STF_F32, 1, &(int){2}, bad);
    stf_save(&f, path);
    assert_int_equal(st_open(&file, path, &err), 0);
    struct passing q = {.room = room};
    struct st_want one = {
        .tensor = st_find(file, "t.two"), .n = 2, .done = done, .arg = &q};
    one.dst = room;
    expect(st_read_wanted(file, &one, 1, NULL, hex, &err), -EINVAL, &err, "at index 1:");
    assert_int_equal(q.done, 0);
    st_close(file);
    free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_the_order),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_passing_through),
        cmocka_unit_test(test_not_handed_over),
        cmocka_unit_test(test_finite_prefix),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
