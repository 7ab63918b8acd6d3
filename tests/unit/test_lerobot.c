// lerobot: the table of tensors, the names they may have, and opening a directory.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/lerobot.h"
#include "tests/unit/lerobot_fixture.h"

struct tally {
    uint64_t sum;
    int n;
};

static int tally(void *context, const char *name, int rank, const int *shape)
{
    struct tally *t = context;
    uint64_t h = 0xcbf29ce484222325u;
    char line[256];
    size_t at = (size_t)snprintf(line, sizeof line, "%s ", name);

    for (int i = 0; i < rank; i++)
        at +=
            (size_t)snprintf(line + at, sizeof line - at, "%s%d", i ? "x" : "", shape[i]);
    for (const char *p = line; *p; p++)
        h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    t->sum += h;
    t->n++;
    return 0;
}

// Names and shapes of LeRobot 0.6.1's own modules: their number, and the sum of the FNV-1a
// hashes of "name 1x2x3", vae_* left out.
static void test_manifest(void **state)
{
    static const struct {
        const char *backbone;
        int cameras;
        bool env, pre_norm;
        int encoder, decoder;
        bool dilation;
        int n;
        uint64_t sum;
    } rows[] = {
        {"resnet18", 1, false, false, 4, 1, false, 178, 0x4fcbc75525afe1a2ull},
        {"resnet34", 2, false, true, 2, 7, false, 344, 0x6addec2c4622ee13ull},
        {"resnet50", 1, true, false, 1, 1, true, 309, 0x74ad08c14bf55888ull},
        {"resnet101", 1, false, false, 1, 2, false, 580, 0x7a0936fb7fba5c33ull},
        {"resnet152", 3, true, true, 3, 2, true, 863, 0xd85b7108a985c20aull},
        {"resnet18", 0, true, false, 2, 2, false, 72, 0xc4c2b791a5f19918ull},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lr_config c = {.n_cameras = rows[i].cameras};
        struct tally t = {0, 0};

        c.act = (struct lerobot_act){.chunk_size = 9,
                                     .dim_model = 16,
                                     .n_heads = 4,
                                     .dim_feedforward = 24,
                                     .latent_dim = 10,
                                     .n_encoder_layers = rows[i].encoder,
                                     .n_decoder_layers = rows[i].decoder,
                                     .pre_norm = rows[i].pre_norm,
                                     .dilation = rows[i].dilation,
                                     .depth = atoi(rows[i].backbone + 6)};
        c.state = (struct lr_feature){.rank = 1, .shape = {7}};
        c.action = (struct lr_feature){.rank = 1, .shape = {6}};
        c.env = (struct lr_feature){.rank = rows[i].env, .shape = {5}};
        assert_int_equal(lr_manifest(&c, tally, &t), 0);
        assert_int_equal(t.n, rows[i].n);
        if (t.sum != rows[i].sum)
            fail_msg("%s: names or shapes differ from LeRobot's", rows[i].backbone);
    }
}

static void rename_tensor(struct lrf *k, const char *from, const char *to)
{
    int i = stf_index(&k->weights, from);

    assert_true(i >= 0);
    snprintf(k->weights.t[i].name, sizeof k->weights.t[i].name, "%s", to);
}

static void add(struct lrf *k, const char *name, int d0, int d1)
{
    const int shape[] = {d0, d1};

    stf_add(&k->weights, name, STF_F32, d1 ? 2 : 1, shape, NULL);
}

static void test_each_tensor_missing(void **state)
{
    struct lrf k;
    size_t n;
    char quoted[330];

    (void)state;
    lrf_begin(&k, LRF_04);
    n = k.weights.n - 1; // the last one is vae_*, which nobody misses
    lrf_expect(&k, NULL, "whole", NULL);
    for (size_t i = 0; i < n; i++)
        for (int how = 0; how < 2; how++) {
            lrf_begin(&k, LRF_04);
            snprintf(quoted, sizeof quoted, "tensor '%s'", k.weights.t[i].name);
            if (how == 0)
                stf_drop(&k.weights, k.weights.t[i].name);
            else
                k.weights.t[i].shape[0]--, k.weights.t[i].count -= 1; // other shape
            if (how == 1 && k.weights.t[i].rank > 1)
                k.weights.t[i].count =
                    (size_t)k.weights.t[i].shape[0] * (size_t)k.weights.t[i].shape[1];
            lrf_expect(&k, NULL, quoted, quoted);
        }
}

static void test_tensor_table(void **state)
{
    static const char *const extra[] = {
        "model.encoder.norm.weight", // belongs to pre_norm
        "model.encoder.layers.1.norm1.weight",
        "model.backbone.conv1.weight",
        "model.action_head.weight2",
        "lm_head.weight",
        "num_batches_tracked",
        "model.encoder.norm.num_batches_tracked",
    };
    static const char *const known[] = {"model.vae_encoder.layers.0.norm1.weight",
                                        "model.backbone.bn1.num_batches_tracked",
                                        "normalize_targets.buffer_action.std"};
    struct lrf k;

    (void)state;
    for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++) {
        lrf_begin(&k, LRF_04);
        add(&k, extra[i], 8, 0);
        lrf_expect(&k, NULL, extra[i], extra[i]);
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        lrf_begin(&k, LRF_04);
        add(&k, known[i], 2, 0);
        lrf_expect(&k, NULL, known[i], NULL);
    }
    lrf_begin(&k, LRF_04);
    lrf_edit(k.config, "pre_norm", "true");
    lrf_expect(&k, NULL, "pre_norm", "'model.encoder.norm.weight'");
    lrf_begin(&k, LRF_04);
    rename_tensor(&k, "model.encoder_1d_feature_pos_embed.weight",
                  "model.encoder_robot_and_latent_pos_embed.weight"); // spring of 2024
    lrf_expect(&k, NULL, "early name", NULL);
}

static void test_compiled_names(void **state)
{
    static const char *const compiled[] = {
        "model._orig_mod.action_head.weight", "_orig_mod.model.action_head.weight",
        "model.action_head._orig_mod.weight", "model.action_head.weight._orig_mod",
        "model._orig_mod._orig_mod.action_head.weight"};
    struct lrf k;

    (void)state;
    for (size_t i = 0; i < sizeof compiled / sizeof compiled[0]; i++) {
        lrf_begin(&k, LRF_04);
        rename_tensor(&k, "model.action_head.weight", compiled[i]);
        lrf_expect(&k, NULL, compiled[i], NULL);
        lrf_begin(&k, LRF_04);
        add(&k, compiled[i], 2, 8);
        lrf_expect(&k, NULL, compiled[i],
                   "two tensors are called 'model.action_head.weight'");
    }
    lrf_begin(&k, LRF_04);
    rename_tensor(&k, "model.action_head.weight", "model.my_orig_mod.action_head.weight");
    lrf_expect(&k, NULL, "a longer word", "no tensor 'model.action_head.weight'");
}

static void test_aliases(void **state)
{
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04); // two tensors of one memory: written once, named twice
    stf_drop(&k.weights, "model.encoder.layers.0.norm2.bias");
    stf_meta(&k.weights, "model.encoder.layers.0.norm2.bias",
             "model.encoder.layers.0.norm1.bias");
    stf_meta(&k.weights, "format", "pt");
    stf_meta(&k.weights, "note", "model.action_head.bias"); // says nothing about tensors
    lrf_expect(&k, NULL, "alias", NULL);
    lrf_begin(&k, LRF_04);
    stf_drop(&k.weights, "model.encoder.layers.0.norm2.bias");
    stf_meta(&k.weights, "model._orig_mod.encoder.layers.0.norm2.bias",
             "model.encoder.layers.0.norm1.bias");
    lrf_expect(&k, NULL, "compiled alias", NULL);
    lrf_begin(&k, LRF_04);
    stf_drop(&k.weights, "model.encoder.layers.0.norm2.bias");
    stf_meta(&k.weights, "model.encoder.layers.0.norm2.bias", "model.action_head.bias");
    lrf_expect(&k, NULL, "alias of another shape", "'model.encoder.layers.0.norm2.bias'");
}

static void test_reading(void **state)
{
    static const int shape[] = {2, 8}, wrong[] = {8, 2};
    struct lerobot_checkpoint *c;
    struct policy_error err;
    float v[16];

    (void)state;
    for (int store = STF_F32; store <= STF_BF16; store++) {
        struct lrf k;

        lrf_begin(&k, LRF_04);
        for (size_t i = 0; i < k.weights.n; i++)
            k.weights.t[i].store = (enum stf_store)store;
        k.weights.t[stf_index(&k.weights, "model.action_head.bias")].value[1] = INFINITY;
        rename_tensor(&k, "model.action_head.weight",
                      "model._orig_mod.action_head.weight");
        assert_int_equal(lrf_open(&k, NULL, &c, &err), 0);
        assert_int_equal(lerobot_tensor(c, "model.action_head.weight", 2, shape, v, &err),
                         0);
        for (size_t i = 0; i < 16; i++)
            assert_true(fabsf(v[i] - stf_value("model.action_head.weight", i)) <
                        (store == STF_F32 ? 1e-9f : 4e-3f));
        assert_int_equal(lerobot_tensor(c, "model.action_head.weight", 2, wrong, v, &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "[2, 8], config.json asks for [8, 2]"));
        assert_int_equal(lerobot_tensor(c, "model.action_head.weight", 1, shape, v, &err),
                         -EINVAL);
        assert_int_equal(lerobot_tensor(c, "model.nothing", 1, shape, v, &err), -EINVAL);
        assert_non_null(strstr(err.text, "'model.nothing'"));
        assert_int_equal(lerobot_tensor(c, "model.action_head.bias", 1, shape, v, &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "'model.action_head.bias'"));
        lerobot_close(c);
    }
    lerobot_close(NULL);
}

static void test_stored_as_integer(void **state)
{
    static const char find[] = "\"model.decoder.norm.bias\":{\"dtype\":\"F32\"";
    struct lerobot_checkpoint *c;
    struct policy_error err;
    char path[300], *bytes, *at;
    struct lrf k;
    size_t n;
    FILE *f;

    (void)state;
    lrf_begin(&k, LRF_04);
    lrf_save(&k);
    lrf_path(&k, "model.safetensors", path, sizeof path);
    bytes = malloc(1 << 20);
    f = fopen(path, "r+b");
    assert_true(bytes && f);
    n = fread(bytes, 1, 1 << 20, f);
    at = memmem(bytes, n, find, sizeof find - 1);
    assert_non_null(at);
    memcpy(at + sizeof find - 5, "I32", 3);
    rewind(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    free(bytes);
    assert_int_equal(lerobot_open(&c, k.dir, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'model.decoder.norm.bias' is stored as I32"));
    lrf_end(&k);
}

static void expect_open(const struct lrf *k, int code, const char *says)
{
    struct lerobot_checkpoint *c;
    struct policy_error err = {""};
    int r = lerobot_open(&c, k->dir, NULL, &err);

    if (r != code || (says && !strstr(err.text, says)))
        fail_msg("%d '%s', expected %d '%s'", r, err.text, code, says);
    lerobot_close(c);
}

static void test_missing_files(void **state)
{
    char path[300], up[128], *slash;
    struct lrf k;

    (void)state;
    lrf_begin(&k, LRF_04);
    lrf_save(&k);
    expect_open(&k, 0, NULL);
    lrf_path(&k, "adapter_model.safetensors", path, sizeof path);
    stf_write_text(path, "x");
    expect_open(&k, -EINVAL, "LoRA adapter");
    unlink(path);
    lrf_path(&k, "model.safetensors", path, sizeof path);
    unlink(path);
    expect_open(&k, -ENOENT, "model.safetensors: No such file or directory: point at");
    lrf_path(&k, "config.json", path, sizeof path);
    unlink(path);
    expect_open(&k, -ENOENT,
                "has no config.json: point at the pretrained_model directory");
    lrf_path(&k, "pretrained_model", path, sizeof path); // one directory too high
    assert_int_equal(mkdir(path, 0700), 0);
    slash = path + strlen(path);
    snprintf(slash, sizeof path - strlen(path), "/config.json");
    stf_write_text(path, "{}");
    snprintf(up, sizeof up, "did you mean %.100s", k.dir);
    expect_open(&k, -ENOENT, up);
    expect_open(&k, -ENOENT, "/pretrained_model?");
    unlink(path);
    *slash = 0;
    rmdir(path);
    lrf_end(&k);
}

static void test_long_path(void **state)
{
    static char dir[700];
    struct lerobot_checkpoint *c;
    struct policy_error err = {""};

    (void)state;
    memset(dir, 'a', sizeof dir - 1);
    assert_int_equal(lerobot_open(&c, dir, NULL, &err), -ENAMETOOLONG);
    assert_null(c);
    assert_int_equal(lerobot_open(&c, "/nonexistent", NULL, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest),
        cmocka_unit_test(test_each_tensor_missing),
        cmocka_unit_test(test_tensor_table),
        cmocka_unit_test(test_compiled_names),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_stored_as_integer),
        cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_long_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
