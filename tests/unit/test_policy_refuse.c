// What a swap may meet in a directory: checkpoints that are damaged, hostile, somebody else's or
// another robot's. All are refused with one sentence that names the thing; with what a sum says
// of those that are taken.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "policy/digest.h"
#include "policy/memory.h"
#include "tests/unit/checkpoint_scratch.h"

#define WEIGHTS "model.safetensors"

static int load(struct scratch *s, const struct policy_options *opt,
                struct policy_error *err)
{
    struct policy *p = (struct policy *)err; // must become NULL
    memset(err, 0, sizeof *err);
    int rc = policy_load(&p, s->dir, opt, err);
    assert_true((rc == 0) == (p != NULL));
    policy_free(p);
    return rc;
}

// ---- damage ---------------------------------------------------------------------------

static void nan_weight(struct scratch *s)
{
    scratch_poke(s, WEIGHTS, "model.decoder.layers.0.linear2.weight", 7, NAN);
}

static void nan_nobody_reads(struct scratch *s) // its input is a latent of zeros
{
    scratch_poke(s, WEIGHTS, "model.encoder_latent_input_proj.weight", 0, NAN);
}
static void infinite_weight(struct scratch *s)
{
    scratch_poke(s, WEIGHTS, "model.action_head.bias", 5, INFINITY);
}

static void nan_statistic(struct scratch *s)
{
    scratch_poke(s, ACT_FIXTURE_PRE, "observation.state.std", 2, NAN);
}

static void cut(struct scratch *s)
{
    size_t size;
    free(scratch_read(s, WEIGHTS, &size));
    assert_int_equal(truncate(s->path, (off_t)size / 2), 0);
}

static void cut_in_header(struct scratch *s)
{
    assert_int_equal(truncate(scratch_path(s, WEIGHTS), 40), 0);
}

static void huge_header(struct scratch *s)
{
    size_t size;
    char *all = scratch_read(s, WEIGHTS, &size);
    memset(all, 0x7f, 8);
    scratch_write(s, WEIGHTS, all, size);
    free(all);
}

static void overlapping(struct scratch *s)
{
    scratch_edit(s, WEIGHTS, "\"data_offsets\":[256,", "\"data_offsets\":[192,");
}

static void misnamed(struct scratch *s)
{
    scratch_edit(s, WEIGHTS, "model.action_head.weight", "model.action_hand.weight");
}

static void other_width(struct scratch *s)
{
    scratch_edit(s, "config.json", "\"dim_feedforward\":24", "\"dim_feedforward\":32");
}

static void other_policy(struct scratch *s)
{
    scratch_edit(s, "config.json", "\"type\":\"act\"", "\"type\":\"pi0\"");
}

static void deep_json(struct scratch *s)
{
    char deep[4000];
    memset(deep, '[', sizeof deep);
    scratch_write(s, "config.json", deep, sizeof deep);
}

static void no_weights(struct scratch *s)
{
    assert_int_equal(unlink(scratch_path(s, WEIGHTS)), 0);
}

static void fifo(struct scratch *s)
{
    no_weights(s);
    assert_int_equal(mkfifo(s->path, 0600), 0);
}

static const struct {
    const char *name;
    void (*spoil)(struct scratch *s);
    int rc;
    const char *says[2];
} damages[] = {
    {"nan that inference does without",
     nan_nobody_reads,
     -EINVAL,
     {"'model.encoder_latent_input_proj.weight'", "index 0"}},
    {"nan weight",
     nan_weight,
     -EINVAL,
     {"'model.decoder.layers.0.linear2.weight'", "index 7"}},
    {"infinite weight",
     infinite_weight,
     -EINVAL,
     {"'model.action_head.bias'", "index 5"}},
    {"nan statistic", nan_statistic, -EINVAL, {"std of 'observation.state'", "index 2"}},
    {"cut", cut, -EINVAL, {"at tensor 'model.", "cut short"}},
    {"cut in the header", cut_in_header, -EINVAL, {"claims a header", WEIGHTS}},
    {"huge header", huge_header, -EINVAL, {"claims a header", "limit"}},
    {"overlap", overlapping, -EINVAL, {"refused at tensor 'model.", "data_offsets"}},
    {"misnamed", misnamed, -EINVAL, {"no tensor 'model.action_head.weight'", ""}},
    {"other width", other_width, -EINVAL, {"linear1.weight' has the shape", "[32, 16]"}},
    {"other policy", other_policy, -EINVAL, {"'pi0'", "only 'act'"}},
    {"deep json", deep_json, -EINVAL, {"pick_v2/config.json", "nests too deeply"}},
    {"no weights", no_weights, -ENOENT, {"cannot open pick_v2/model.safetensors", ""}},
    {"a fifo", fifo, -EINVAL, {"pick_v2/model.safetensors", "not a regular file"}},
};

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void test_damages(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    const struct policy_options opt = {.name = "pick_v2", .strict_files = true};
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        struct policy_error err;
        struct scratch s;
        scratch_make(&s, &f);
        assert_int_equal(load(&s, &opt, &err), 0);
        damages[i].spoil(&s);
        double before = cpu_ms();
        int rc = load(&s, &opt, &err);
        print_message("%-18s %6.2f ms  %s\n", damages[i].name, cpu_ms() - before,
                      err.text);
        assert_int_equal(rc, damages[i].rc);
        for (int k = 0; k < 2; k++)
            if (!strstr(err.text, damages[i].says[k]))
                fail_msg("%s: '%s' does not say '%s'", damages[i].name, err.text,
                         damages[i].says[k]);
        assert_null(strstr(err.text, s.dir)); // where it lies is nobody's business
        scratch_remove(&s);
    }
}

// A batch norm whose variance is nothing and whose gain is enormous: finite as stored.
static void test_fold_overflows(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    struct policy_error err;
    struct scratch s;
    f.dtype = ACT_FIXTURE_F32;
    scratch_make(&s, &f);
    scratch_poke(&s, WEIGHTS, "model.backbone.layer1.0.bn2.weight", 3, 3e38f);
    scratch_poke(&s, WEIGHTS, "model.backbone.layer1.0.bn2.running_var", 3, 0.0f);
    assert_int_equal(load(&s, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "model.backbone.layer1.0.bn2"));
    assert_non_null(strstr(err.text, "channel 3"));
    scratch_remove(&s);
}

// ---- strict files ---------------------------------------------------------------------

static const char *const every_file[] = {"config.json",
                                         WEIGHTS,
                                         "policy_preprocessor.json",
                                         "policy_postprocessor.json",
                                         ACT_FIXTURE_PRE,
                                         ACT_FIXTURE_POST};

static void expect_strict(struct scratch *s, int rc, const char *file, const char *says)
{
    struct policy_options opt = {.name = "pick_v2", .strict_files = true};
    struct policy_error err;
    int got = load(s, &opt, &err);
    if (got != rc || !strstr(err.text, says) || !strstr(err.text, file))
        fail_msg("%s: %d, not %d: %s", file, got, rc, err.text);
    opt.strict_files = false;
    assert_int_equal(load(s, &opt, &err), 0);
}

static void test_strict_files(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    for (size_t i = 0; i < sizeof every_file / sizeof *every_file; i++) {
        const char *file = every_file[i];
        char aside[600];
        struct scratch s;
        scratch_make(&s, &f);
        assert_int_equal(chmod(scratch_path(&s, file), 0664), 0);
        expect_strict(&s, -EINVAL, file, "chmod go-w");
        assert_int_equal(chmod(s.path, 0646), 0);
        expect_strict(&s, -EINVAL, file, "chmod go-w");
        assert_int_equal(chmod(s.path, 0644), 0);
        if (chown(s.path, 12345, (gid_t)-1) == 0) {
            expect_strict(&s, -EINVAL, file, "belongs to user 12345");
            assert_int_equal(chown(s.path, 0, (gid_t)-1), 0);
        }
        snprintf(aside, sizeof aside, "%s/aside", s.dir);
        assert_int_equal(rename(s.path, aside), 0);
        assert_int_equal(symlink("aside", s.path), 0);
        expect_strict(&s, -ELOOP, file, "symbolic link");
        scratch_remove(&s);
    }
}

// ---- memory, cancelling ---------------------------------------------------------------

// A file of 60 MB whose config.json asks for 70 GB of working memory.
static void test_more_than_there_is(void **unused)
{
    (void)unused;
    static const char *const key[4] = {"observation.images.a", "observation.images.b",
                                       "observation.images.c", "observation.images.d"};
    struct act_fixture f = act_fixture_tiny();
    struct policy_error err;
    struct scratch s;
    assert_true(memory_available() > 0);
    assert_int_equal(memory_check(1 << 20, &err), 0);
    assert_int_equal(memory_check((size_t)memory_available() * 2, &err), -ENOMEM);
    if (memory_available() >> 30 > 60)
        skip();
    f.n_cameras = 4;
    f.norm_visual = "IDENTITY";
    f.dim_feedforward = 65536;
    for (int i = 0; i < 4; i++)
        f.camera[i] = (struct act_fixture_camera){key[i], 8192, 8192};
    scratch_make(&s, &f);
    double before = cpu_ms();
    int rc = load(&s, NULL, &err);
    print_message("%.1f ms: %s\n", cpu_ms() - before, err.text);
    assert_int_equal(rc, -ENOMEM);
    assert_non_null(strstr(err.text, "image shapes in config.json"));
    assert_true(cpu_ms() - before < 1000); // none of it was touched
    scratch_remove(&s);
}

static void test_cancel(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    atomic_bool cancel = true;
    const struct policy_options opt = {.cancel = &cancel};
    struct policy_error err;
    struct scratch s;
    scratch_make(&s, &f);
    assert_int_equal(load(&s, &opt, &err), -ECANCELED);
    assert_non_null(strstr(err.text, "cancelled"));
    atomic_store(&cancel, false);
    assert_int_equal(load(&s, &opt, &err), 0);
    scratch_remove(&s);
}

// ---- digests --------------------------------------------------------------------------

static void check_digests(struct scratch *s, const struct policy_info *info)
{
    char hex[65], text[200];
    struct policy_error err;
    scratch_sha256(s, "config.json", hex);
    assert_string_equal(info->config_sha256, hex);
    scratch_sha256(s, WEIGHTS, hex);
    assert_string_equal(info->weights_sha256, hex);
    assert_int_equal(strlen(info->statistics_sha256), 64);
    snprintf(text, sizeof text, "%s%s%s", info->config_sha256, info->weights_sha256,
             info->statistics_sha256);
    assert_int_equal(digest_of(text, strlen(text), hex, &err), 0);
    assert_string_equal(info->digest, hex);
}

static void load_digests(struct scratch *s, struct policy_info *info)
{
    struct policy *p;
    struct policy_error err;
    if (policy_load(&p, s->dir, NULL, &err))
        fail_msg("%s", err.text);
    *info = *policy_describe(p);
    policy_free(p);
}

static void test_digests(void **unused)
{
    (void)unused;
    for (int dtype = 0; dtype < 3; dtype++)
        for (int era = 0; era < 2; era++) {
            struct act_fixture f = act_fixture_tiny();
            struct policy_info info;
            struct scratch s;
            f.dtype = (enum act_fixture_dtype)dtype;
            f.era = (enum act_fixture_era)era;
            f.n_cameras = dtype == 0; // with a backbone, many blocks; without, one
            f.env_dim = f.n_cameras ? 0 : 3;
            scratch_make(&s, &f);
            load_digests(&s, &info);
            check_digests(&s, &info);
            scratch_remove(&s);
        }
}

// Each of the three follows its own part and no other; the whole follows all.
static void test_digests_follow(void **unused)
{
    (void)unused;
    const struct act_fixture f = scratch_small();
    struct policy_info a, b;
    struct scratch s;
    scratch_make(&s, &f);
    load_digests(&s, &a);
    scratch_edit(&s, "config.json", "\"dropout\":0.1", "\"dropout\":0.2");
    load_digests(&s, &b);
    assert_string_not_equal(a.config_sha256, b.config_sha256);
    assert_string_equal(a.weights_sha256, b.weights_sha256);
    assert_string_equal(a.statistics_sha256, b.statistics_sha256);
    assert_string_not_equal(a.digest, b.digest);
    scratch_poke(&s, WEIGHTS, "model.encoder_latent_input_proj.weight", 0,
                 5.0f); // unused
    load_digests(&s, &a);
    assert_string_not_equal(a.weights_sha256, b.weights_sha256);
    assert_string_equal(a.config_sha256, b.config_sha256);
    assert_string_equal(a.statistics_sha256, b.statistics_sha256);
    scratch_poke(&s, ACT_FIXTURE_POST, "action.mean", 1, 0.75f);
    load_digests(&s, &b);
    assert_string_equal(a.weights_sha256, b.weights_sha256);
    assert_string_not_equal(a.statistics_sha256, b.statistics_sha256);
    assert_string_not_equal(a.digest, b.digest);
    scratch_poke(&s, ACT_FIXTURE_POST, "action.q01", 1, 0.75f); // read, used by nobody
    load_digests(&s, &a);
    assert_string_equal(a.statistics_sha256, b.statistics_sha256);
    scratch_remove(&s);
}

// The documented order, spelt out by a twin for a checkpoint whose constants are known.
static void test_statistics_order(void **unused)
{
    (void)unused;
    struct act_fixture f = scratch_small();
    unsigned char text[1000];
    struct policy_info info;
    struct policy_error err;
    struct scratch s;
    char hex[65];
    size_t at = 0;
    f.env_dim = 0;
    f.n_cameras = 0;
    f.state_dim = 1;
    f.action_dim = 2;
    f.norm_state = "IDENTITY";
    f.norm_action = "MEAN_STD";
    f.n_cameras = 1;
    f.norm_visual = "IDENTITY";
    scratch_make(&s, &f);
    load_digests(&s, &info);
    const struct {
        uint32_t n;
        const char *mode;
        float v[8][3]; // sub, div, mul, add, pre, half, range, base
    } part[3] = {
        {1, "IDENTITY", {{0}, {1}, {1}, {0}, {0}, {1}, {1}, {0}}},
        {2,
         "MEAN_STD",
         {{0, 0.125f},
          {0.25f + 1e-8f, 0.25f + 1e-8f},
          {1, 1},
          {0, 0},
          {0, 0},
          {1, 1},
          {0.25f, 0.25f},
          {0, 0.125f}}},
        {3, "IDENTITY", {{0}, {1, 1, 1}, {1, 1, 1}, {0}, {0}, {1, 1, 1}, {1, 1, 1}, {0}}},
    };
    for (int i = 0; i < 3; i++) {
        memcpy(text + at, &part[i].n, 4);
        memcpy(text + at + 4, part[i].mode, strlen(part[i].mode) + 1);
        at += 4 + strlen(part[i].mode) + 1;
        for (int k = 0; k < 8; k++, at += 4 * part[i].n)
            memcpy(text + at, part[i].v[k], 4 * part[i].n);
    }
    assert_int_equal(digest_of(text, at, hex, &err), 0);
    assert_string_equal(info.statistics_sha256, hex);
    scratch_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damages),        cmocka_unit_test(test_fold_overflows),
        cmocka_unit_test(test_strict_files),   cmocka_unit_test(test_more_than_there_is),
        cmocka_unit_test(test_cancel),         cmocka_unit_test(test_digests),
        cmocka_unit_test(test_digests_follow), cmocka_unit_test(test_statistics_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
