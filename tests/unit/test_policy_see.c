// A frame's part of an inference done before the rest of it, or not at all because it was done:
// same bits as a policy that has seen nothing. And the first rows of a chunk alone: same bits as
// among all.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "policy/kernels/cpu.h"
#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#define CAMERAS 3
#define FRAMES  4
#define ROWS    8
#define JOINTS  6
#define N       (ROWS * JOINTS)

static const struct act_fixture_camera camera[CAMERAS] = {
    {"observation.images.front", 32, 32},
    {"observation.images.left", 40, 32},
    {"observation.images.wrist", 32, 48},
};

// FRAMES pictures of each camera, in the size as trained and in another.
static uint8_t pixels[CAMERAS][FRAMES][3 * 64 * 64];
static char dir[256];

static struct policy_image frame(int c, int i, uint64_t number)
{
    return (struct policy_image){.rgb = pixels[c][i],
                                 .width = camera[c].width,
                                 .height = camera[c].height,
                                 .stride = 3 * camera[c].width,
                                 .number = number};
}

static struct policy_image other_size(int c, int i, uint64_t number)
{
    struct policy_image image = frame(c, i, number);
    image.width = 24;
    image.height = 56;
    image.stride = 3 * 24;
    return image;
}

static struct policy *load(struct policy_options opt)
{
    struct policy *p = NULL;
    struct policy_error err = {{0}};
    int rc = policy_load(&p, dir, &opt, &err);
    if (rc)
        fail_msg("policy_load: %d: %s", rc, err.text);
    return p;
}

// Written once: 11 million values are read by every load.
static int setup(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = CAMERAS;
    for (int c = 0; c < CAMERAS; c++) {
        f.camera[c] = camera[c];
        for (int i = 0; i < FRAMES; i++)
            for (size_t k = 0; k < sizeof pixels[c][i]; k++)
                pixels[c][i][k] =
                    (uint8_t)act_fixture_mix((uint64_t)(c * FRAMES + i) * 99991 + k / 7);
    }
    return act_fixture_mkdir(dir) || act_fixture_write(dir, &f);
}

static int teardown(void **unused)
{
    (void)unused;
    act_fixture_remove(dir);
    return 0;
}

static const float state[JOINTS] = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f};

static int infer(struct policy *p, const struct policy_image *image, float *actions)
{
    const struct policy_observation obs = {.state = state, .image = image};
    return policy_infer(p, &obs, actions, NULL);
}

// What a policy says that keeps nothing.
static void plainly(struct policy *twin, const struct policy_image *image, float *actions)
{
    struct policy_image anew[CAMERAS];
    for (int c = 0; c < CAMERAS; c++) {
        anew[c] = image[c];
        anew[c].number = 0;
    }
    assert_int_equal(infer(twin, anew, actions), 0);
    assert_int_equal(policy_reused(twin), 0);
}

static void expect(struct policy *p, struct policy *twin,
                   const struct policy_image *image, uint32_t reused)
{
    float a[N], b[N];
    plainly(twin, image, b);
    assert_int_equal(infer(p, image, a), 0);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(policy_reused(p), reused);
}

// ---- seeing ---------------------------------------------------------------------------

static void in_any_order(int threads, enum precision precision)
{
    static const int order[6][CAMERAS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const struct policy_options opt = {.threads = threads, .precision = precision};
    struct policy *p = load(opt), *twin = load(opt);
    uint64_t number = 0;
    for (int k = 0; k < 6; k++)
        for (int many = 0; many <= CAMERAS; many++) {
            struct policy_image image[CAMERAS];
            uint32_t seen = 0;
            number++;
            for (int c = 0; c < CAMERAS; c++)
                image[c] = frame(c, (k + many + c) % FRAMES, number);
            for (int i = 0; i < many; i++) {
                int c = order[k][i];
                assert_int_equal(policy_see(p, c, &image[c]), 0);
                seen |= 1u << c;
            }
            expect(p, twin, image, seen);
        }
    policy_free(p);
    policy_free(twin);
}

static void seen_in_any_order(void **unused)
{
    (void)unused;
    for (int threads = 1; threads <= 3; threads++)
        in_any_order(threads, PRECISION_FLOAT32);
    in_any_order(2, PRECISION_BF16);
    in_any_order(2, PRECISION_INT8);
}

static void what_did_not_change_is_kept(void **unused)
{
    (void)unused;
    struct policy *p = load((struct policy_options){.threads = 2});
    struct policy *twin = load((struct policy_options){.threads = 2});
    struct policy_image image[CAMERAS] = {frame(0, 0, 7), frame(1, 0, 7), frame(2, 0, 1)};
    expect(p, twin, image, 0);
    expect(p, twin, image, 7);
    image[1] = frame(1, 1, 8);
    expect(p, twin, image, 5);
    // One that was seen and then replaced before it was used, by a newer and by an older one.
    image[1] = frame(1, 2, 9);
    assert_int_equal(policy_see(p, 1, &image[1]), 0);
    image[1] = frame(1, 3, 10);
    expect(p, twin, image, 5);
    image[1] = frame(1, 2, 9);
    expect(p, twin, image, 5);
    expect(p, twin, image, 7);
    // Without a number nothing is known, neither now nor after it.
    image[0] = frame(0, 1, 0);
    expect(p, twin, image, 6);
    expect(p, twin, image, 6);
    image[0] = frame(0, 0, 7);
    expect(p, twin, image, 6);
    image[0] = frame(0, 2, 0); // seeing it changes nothing
    assert_int_equal(policy_see(p, 0, &image[0]), 0);
    image[0] = frame(0, 0, 7);
    expect(p, twin, image, 7);
    policy_free(p);
    policy_free(twin);
}

// It is the number that says so: pixels under the same number are not looked at again, which is
// how this test can tell.
static void a_kept_frame_is_not_read(void **unused)
{
    (void)unused;
    struct policy *p = load((struct policy_options){.threads = 1});
    struct policy_image image[CAMERAS] = {frame(0, 0, 1), frame(1, 0, 1), frame(2, 0, 1)};
    float a[N], b[N];
    assert_int_equal(infer(p, image, a), 0);
    image[2] = frame(2, 1, 1);
    assert_int_equal(policy_see(p, 2, &image[2]), 0);
    assert_int_equal(infer(p, image, b), 0);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(policy_reused(p), 7);
    image[2].number = 2;
    assert_int_equal(infer(p, image, b), 0);
    assert_memory_not_equal(a, b, sizeof a);
    policy_free(p);
}

static void sizes_change(void **unused)
{
    static const enum policy_resize modes[] = {POLICY_RESIZE_STRETCH,
                                               POLICY_RESIZE_LETTERBOX};
    (void)unused;
    for (int m = 0; m < 2; m++) {
        struct policy_options opt = {.threads = 2, .resize = modes[m]};
        struct policy *p = load(opt), *twin = load(opt);
        struct policy_image image[CAMERAS] = {frame(0, 0, 1), other_size(1, 0, 1),
                                              frame(2, 0, 1)};
        assert_int_equal(policy_see(p, 1, &image[1]), 0);
        expect(p, twin, image, 2);
        image[0] = other_size(0, 1, 2);
        image[1] = frame(1, 1, 2);
        assert_int_equal(policy_see(p, 0, &image[0]), 0);
        expect(p, twin, image, 5);
        image[0] = frame(0, 1, 3);
        image[2] = other_size(2, 1, 3);
        expect(p, twin, image, 2);
        policy_free(p);
        policy_free(twin);
    }
}

// ---- refusals -------------------------------------------------------------------------

static void a_refusal_forgets_nothing(void **unused)
{
    (void)unused;
    struct policy *p = load((struct policy_options){.threads = 2});
    struct policy *twin = load((struct policy_options){.threads = 2});
    struct policy_image image[CAMERAS] = {frame(0, 0, 1), frame(1, 0, 1), frame(2, 0, 1)};
    struct policy_image bad[CAMERAS];
    float actions[N];
    expect(p, twin, image, 0);
    for (int how = 0; how < 4; how++) {
        bad[0] = frame(0, 1, 2); // would be computed anew, were not the next one refused
        bad[1] = frame(1, 1, 2);
        bad[2] = frame(2, 1, 2);
        bad[1].rgb = how == 0 ? NULL : bad[1].rgb;
        bad[1].width += how == 1;
        bad[1].stride -= how == 2 ? 3 : 0;
        bad[1].height = how == 3 ? 0 : bad[1].height;
        assert_int_equal(policy_see(p, 1, &bad[1]), -EINVAL);
        assert_non_null(strstr(policy_last_error(p), camera[1].key));
        assert_int_equal(infer(p, bad, actions), -EINVAL);
        assert_int_equal(policy_reused(p), 0);
        bad[1].number = 1; // nor is it taken for the one that was seen
        assert_int_equal(policy_see(p, 1, &bad[1]), -EINVAL);
        assert_int_equal(infer(p, bad, actions), -EINVAL);
        expect(p, twin, image, 7);
    }
    assert_int_equal(policy_see(p, -1, &image[0]), -EINVAL);
    assert_int_equal(policy_see(p, CAMERAS, &image[0]), -EINVAL);
    assert_int_equal(policy_see(p, 0, NULL), -EINVAL);
    assert_int_equal(policy_see(NULL, 0, &image[0]), -EINVAL);
    expect(p, twin, image, 7);
    policy_free(p);
    policy_free(twin);
}

static void an_output_that_is_not_finite(void **unused)
{
    (void)unused;
    struct policy *p = load((struct policy_options){.threads = 1});
    struct policy *twin = load((struct policy_options){.threads = 1});
    struct policy_image image[CAMERAS] = {frame(0, 0, 1), frame(1, 0, 1), frame(2, 0, 1)};
    float far[JOINTS] = {3e38f, -3e38f, 3e38f}, nan_state[JOINTS] = {NAN}, actions[N];
    float zero[N] = {0};
    const struct policy_observation blown = {.state = far, .image = image},
                                    nan_in = {.state = nan_state, .image = image};
    assert_int_equal(policy_see(p, 2, &image[2]), 0);
    assert_int_equal(policy_infer(p, &blown, actions, NULL), -EDOM);
    assert_memory_equal(actions, zero, sizeof zero);
    assert_int_equal(policy_reused(p), 4);
    expect(p, twin, image, 7); // the frames were not to blame
    assert_int_equal(policy_infer(p, &nan_in, actions, NULL), -EDOM);
    assert_int_equal(policy_reused(p), 0); // it did not get as far as that
    expect(p, twin, image, 7);
    policy_free(p);
    policy_free(twin);
}

// ---- taking over ----------------------------------------------------------------------

// Policies that share compute threads share nothing of what they saw.
static void beside_another(void **unused)
{
    (void)unused;
    struct policy *first = load((struct policy_options){.threads = 2});
    struct policy *twin = load((struct policy_options){.threads = 2});
    struct policy *next = load((struct policy_options){.beside = first});
    struct policy_image a[CAMERAS] = {frame(0, 0, 1), frame(1, 0, 1), frame(2, 0, 1)};
    struct policy_image b[CAMERAS] = {frame(0, 1, 1), frame(1, 1, 1), frame(2, 1, 1)};
    expect(first, twin, a, 0);
    expect(next, twin, b, 0); // other pixels under the same numbers
    assert_int_equal(policy_see(next, 0, &b[0]), 0);
    expect(first, twin, a, 7);
    expect(next, twin, b, 7);
    policy_free(first);
    expect(next, twin, b, 7);
    policy_free(next);
    policy_free(twin);
}

// ---- the first rows -------------------------------------------------------------------

static void first_rows(const struct act_fixture *f, int threads, enum precision precision)
{
    static const int counts[] = {1, 2, 7, 8, 13, 33, 66, 67, 68}; // of up to 67
    char here[256];
    struct policy_error err = {{0}};
    struct policy *all, *some;
    size_t a = (size_t)f->action_dim, n = (size_t)f->chunk_size * a;
    float *whole = malloc(2 * n * sizeof *whole), *part = malloc(2 * n * sizeof *part);
    struct policy_image image[1] = {frame(0, 2, 0)};
    const struct policy_observation obs = {.state = state, .env = state, .image = image};
    assert_int_equal(act_fixture_mkdir(here), 0);
    assert_int_equal(act_fixture_write(here, f), 0);
    assert_int_equal(
        policy_load(&all, here,
                    &(struct policy_options){.threads = threads, .precision = precision},
                    &err),
        0);
    assert_int_equal(policy_describe(all)->rows, f->chunk_size);
    assert_int_equal(policy_infer(all, &obs, whole, whole + n), 0);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        int rows = counts[k];
        struct policy_options opt = {
            .threads = threads, .rows = rows, .precision = precision};
        int r = rows < f->chunk_size ? rows : f->chunk_size;
        for (size_t i = 0; i < 2 * n; i++)
            part[i] = 77;
        assert_int_equal(policy_load(&some, here, &opt, &err), 0);
        assert_int_equal(policy_describe(some)->rows, r);
        assert_int_equal(policy_describe(some)->chunk_size, f->chunk_size);
        assert_int_equal(policy_infer(some, &obs, part, part + n), 0);
        assert_memory_equal(part, whole, (size_t)r * a * sizeof *part);
        assert_memory_equal(part + n, whole + n, (size_t)r * a * sizeof *part);
        for (size_t i = (size_t)r * a; i < n; i++) // no more is written
            assert_true(part[i] == 77 && part[n + i] == 77);
        policy_free(some);
    }
    act_fixture_remove(here);
    policy_free(all);
    free(whole);
    free(part);
}

static void rows_have_the_bits_of_the_whole(void **unused)
{
    (void)unused;
    struct act_fixture f = act_fixture_tiny();
    f.n_cameras = 0;
    f.env_dim = 3;
    f.chunk_size = f.n_action_steps = 67; // more than one block of attention's queries
    f.dim_model = 64;
    f.dim_feedforward = 136;
    for (int kind = 0; kind < 4; kind++) {
        f.n_decoder_layers = 1 + kind / 2;
        f.pre_norm = f.gelu = kind % 2;
        first_rows(&f, 1 + kind % 3, PRECISION_FLOAT32);
    }
    const enum cpu_isa before = cpu_chosen();
    for (int isa = 0; isa < CPU_ISAS; isa++) { // each with tiles of its own
        if (cpu_choose((enum cpu_isa)isa) != 0)
            continue;
        first_rows(&f, 2, PRECISION_FLOAT32);
        first_rows(&f, 2, PRECISION_BF16);
        first_rows(&f, 2, PRECISION_INT8);
    }
    assert_int_equal(cpu_choose(before), 0);
    f.n_cameras = 1;
    f.chunk_size = f.n_action_steps = ROWS;
    first_rows(&f, 2, PRECISION_FLOAT32);
}

static void rows_that_are_none(void **unused)
{
    (void)unused;
    struct policy *p = NULL;
    struct policy_error err = {{0}};
    assert_int_equal(policy_load(&p, dir, &(struct policy_options){.rows = -1}, &err),
                     -EINVAL);
    assert_non_null(strstr(err.text, "rows"));
    assert_null(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seen_in_any_order),
        cmocka_unit_test(what_did_not_change_is_kept),
        cmocka_unit_test(a_kept_frame_is_not_read),
        cmocka_unit_test(sizes_change),
        cmocka_unit_test(a_refusal_forgets_nothing),
        cmocka_unit_test(an_output_that_is_not_finite),
        cmocka_unit_test(beside_another),
        cmocka_unit_test(rows_have_the_bits_of_the_whole),
        cmocka_unit_test(rows_that_are_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
