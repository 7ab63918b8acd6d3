// What a profile says of an inference: every step once, in order, with the textbook's products; the
// time between them, and nothing when none is attached. And what profile_runs makes of several.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "policy/policy.h"
#include "policy/profile_runs.h"
#include "tests/unit/act_fixture.h"

enum { HEIGHT = 64, WIDTH = 96, CAMERAS = 2, PIXELS = 2 * 3 }; // the features': 1/32

static struct act_fixture fixture;
static char dir[256];
static uint8_t rgb[HEIGHT * WIDTH * 3];

static int set_up(void **state)
{
    (void)state;
    fixture = act_fixture_tiny();
    fixture.n_cameras = CAMERAS;
    fixture.camera[0] =
        (struct act_fixture_camera){"observation.images.one", HEIGHT, WIDTH};
    fixture.camera[1] =
        (struct act_fixture_camera){"observation.images.two", HEIGHT, WIDTH};
    fixture.n_encoder_layers = 2;
    fixture.n_decoder_layers = 2;
    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)act_fixture_mix(i);
    return act_fixture_mkdir(dir) || act_fixture_write(dir, &fixture);
}

static int tear_down(void **state)
{
    (void)state;
    act_fixture_remove(dir);
    return 0;
}

static struct policy *load(int threads)
{
    const struct policy_options opt = {.threads = threads};
    struct policy_error err;
    struct policy *p;

    if (policy_load(&p, dir, &opt, &err))
        fail_msg("%s", err.text);
    return p;
}

static struct policy_image picture(uint64_t number)
{
    return (struct policy_image){.rgb = rgb,
                                 .width = WIDTH,
                                 .height = HEIGHT,
                                 .stride = 3 * WIDTH,
                                 .number = number};
}

static void infer(struct policy *p, uint64_t number)
{
    static const float values[6] = {0.1f, -0.2f, 0.3f, -0.4f, 0.5f, -0.6f};
    const struct policy_image image[CAMERAS] = {picture(number), picture(number)};
    const struct policy_observation obs = {.state = values, .image = image};
    float actions[8 * 6];

    assert_int_equal(policy_infer(p, &obs, actions, NULL), 0);
}

static const struct profile_step *step_of(const struct profile *p, const char *what)
{
    const struct profile_step *found = NULL;

    for (int i = 0; i < p->n; i++)
        if (strcmp(p->step[i].what, what) == 0) {
            assert_null(found); // once
            found = &p->step[i];
        }
    if (!found)
        fail_msg("no step '%s'", what);
    return found;
}

// ---- what there is -------------------------------------------------------------------------

// Multiplications of a ResNet-18 and an ACT as one counts them by hand, without what is computed at
// load: decoder layer 1 up to its query.
static double backbone_macs(void)
{
    double h = HEIGHT / 2, w = WIDTH / 2, macs = h * w * 147 * 64;

    h /= 2, w /= 2;
    macs += 4 * h * w * 9 * 64 * 64;
    for (int c = 128; c <= 512; c *= 2) {
        h /= 2, w /= 2;
        macs += h * w * (9.0 * c / 2 * c + 3 * 9.0 * c * c + 1.0 * c / 2 * c);
    }
    return CAMERAS * macs;
}

static double attention_macs(double queries, double keys, double d)
{
    return 2 * queries * keys * d;
}

static double transformer_macs(const struct act_fixture *f)
{
    double d = f->dim_model, ff = f->dim_feedforward, c = f->chunk_size;
    double s = 2 + CAMERAS * PIXELS; // latent, state, images
    double tokens = f->state_dim * d + CAMERAS * PIXELS * 512.0 * d;
    double feed_forward = 2 * d * ff; // of a row
    double encoder = s * (4 * d * d + feed_forward) + attention_macs(s, s, d);
    double query = c * 4 * d * d + attention_macs(c, c, d) + c * d * d;
    double cross = s * 2 * d * d + attention_macs(c, s, d) + c * (d * d + feed_forward);

    return tokens + f->n_encoder_layers * encoder + (f->n_decoder_layers - 1) * query +
           f->n_decoder_layers * cross + c * d * f->action_dim;
}

static void test_every_product_is_there(void **state)
{
    static struct profile profile;
    struct profile_stage stage[PROFILE_STAGES + 1];
    struct policy *p = load(1);
    double all = 0, want = backbone_macs() + transformer_macs(&fixture);

    (void)state;
    profile = (struct profile){.n = 0};
    policy_profile(p, &profile);
    infer(p, 0);
    for (int i = 0; i < profile.n; i++)
        all += profile.step[i].macs;
    assert_true(all > want * (1 - 1e-9) && all < want * (1 + 1e-9));
    assert_int_equal(profile_stages(&profile, stage), 5);
    assert_string_equal(stage[0].name, "backbone");
    assert_true(stage[0].macs > backbone_macs() * (1 - 1e-9) &&
                stage[0].macs < backbone_macs() * (1 + 1e-9));
    assert_string_equal(stage[1].name, "tokens");
    assert_string_equal(stage[2].name, "encoder");
    assert_string_equal(stage[3].name, "decoder");
    assert_string_equal(stage[4].name, "head");
    assert_int_equal(stage[5].steps, profile.n);
    assert_true(stage[5].macs > want * (1 - 1e-9) && stage[5].macs < want * (1 + 1e-9));
    // Weights once, biases and norms apart: nearly all that the policy has packed.
    double packed = (double)policy_describe(p)->weight_bytes;
    assert_true(stage[5].weight_bytes < packed && stage[5].weight_bytes > 0.98 * packed);
    assert_true(stage[5].winograd_bytes > 0 &&
                stage[5].winograd_bytes < stage[0].weight_bytes);
    policy_free(p);
}

static void test_steps_say_what_they_are(void **state)
{
    static struct profile profile;
    struct policy *p = load(1);
    const struct profile_step *s;

    (void)state;
    profile = (struct profile){.n = 0};
    policy_profile(p, &profile);
    infer(p, 0);
    s = step_of(&profile, "image 1 stem");
    assert_int_equal(s->rows, HEIGHT / 2 * WIDTH / 2);
    assert_int_equal(s->depth, 147);
    assert_int_equal(s->out, 64);
    s = step_of(&profile, "image 2 layer3.0 conv1");
    assert_string_equal(s->stage, "backbone");
    assert_int_equal(s->rows, HEIGHT / 16 * WIDTH / 16);
    assert_int_equal(s->depth, 9 * 128);
    assert_int_equal(s->out, 256);
    s = step_of(&profile, "image 2 layer1.1 conv2");
    assert_true(strncmp(s->way, "winograd", 8) == 0);
    assert_non_null(strstr(s->kernel, cpu_isa_name(cpu_chosen())));
    s = step_of(&profile, "image 1 layer2.0 shortcut");
    assert_int_equal(s->depth, 64);
    s = step_of(&profile, "image 2 1x1");
    assert_string_equal(s->stage, "tokens");
    assert_string_equal(s->way, "packed");
    s = step_of(&profile, "encoder 2 linear2");
    assert_int_equal(s->rows, 2 + CAMERAS * PIXELS);
    assert_int_equal(s->depth, 24);
    assert_int_equal(s->out, 16);
    s = step_of(&profile, "encoder 1 attention");
    assert_true(s->macs == 2.0 * 2 * s->rows * s->depth * s->out); // 2 heads
    (void)step_of(&profile, "decoder 2 cross q"); // of layer 1 it is there since loading
    s = step_of(&profile, "head");
    assert_int_equal(s->out, 6);
    (void)step_of(&profile, "output");
    policy_free(p);
}

// ---- times ---------------------------------------------------------------------------------

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void test_times_are_those_of_the_inference(void **state)
{
    static struct profile profile;
    struct policy *p = load(2);

    (void)state;
    profile = (struct profile){.n = 0};
    policy_profile(p, &profile);
    infer(p, 0);
    int n = profile.n;
    int64_t begin = now_ns(), sum = 0;
    infer(p, 0);
    begin = now_ns() - begin;
    assert_int_equal(profile.n, n); // of one inference, not of two
    for (int i = 0; i < n; i++) {
        assert_true(profile.step[i].ns >= 0);
        sum += profile.step[i].ns;
    }
    assert_true(sum > 0 && sum <= begin);
    policy_profile(p, NULL);
    memset(profile.step, 0, sizeof profile.step);
    infer(p, 0);
    assert_int_equal(profile.step[0].ns, 0);
    policy_free(p);
}

// What policy_see did is part of the inference that follows; what was kept took no step.
static void test_seeing_belongs_to_it(void **state)
{
    static struct profile profile;
    struct policy *p = load(1);
    const struct policy_image image = picture(7);

    (void)state;
    profile = (struct profile){.n = 0};
    policy_profile(p, &profile);
    infer(p, 0);
    int whole = profile.n;
    assert_int_equal(policy_see(p, 1, &image), 0);
    infer(p, 7);
    assert_int_equal(profile.n, whole);
    assert_int_equal(policy_reused(p), 2);
    assert_string_equal(profile.step[0].what, "image 2 stem");
    (void)step_of(&profile, "image 1 stem");
    infer(p, 7);
    assert_int_equal(policy_reused(p), 3);
    for (int i = 0; i < profile.n; i++)
        assert_string_not_equal(profile.step[i].stage, "backbone");
    assert_true(profile.n > 20);
    policy_free(p);
}

static void test_more_steps_than_there_is_room(void **state)
{
    static struct profile p;

    (void)state;
    p = (struct profile){.n = 0};
    profile_begin(&p);
    profile_part(&p, "a stage that is rather long", "a part that is rather long", 12345);
    for (int i = 0; i < PROFILE_STEPS + 10; i++)
        profile_other(&p, "a name that is rather long as well");
    assert_int_equal(p.n, PROFILE_STEPS);
    assert_int_equal(strlen(p.step[0].stage), sizeof p.step[0].stage - 1);
    profile_end(&p);
    profile_begin(&p);
    assert_int_equal(p.n, 0);
    profile_begin(NULL); // nobody is there
    profile_other(NULL, "x");
}

// ---- several -------------------------------------------------------------------------------

static void run_of(struct profile *p, int steps, const int64_t *ns)
{
    profile_begin(p);
    for (int i = 0; i < steps; i++) {
        profile_other(p, "x");
        p->step[i].ns = ns[i];
    }
    profile_end(p);
}

static void test_medians(void **state)
{
    const int64_t ns[][2] = {{5, 70}, {1, 90}, {900, 80}, {3, 10}, {4, 1000}};
    struct profile_runs *r;

    (void)state;
    assert_int_equal(profile_runs_new(&r, 0), -EINVAL);
    assert_null(r);
    assert_int_equal(profile_runs_new(&r, 5), 0);
    for (int i = 0; i < 5; i++) {
        run_of(&r->profile, 2, ns[i]);
        assert_int_equal(profile_runs_take(r), 0);
    }
    assert_int_equal(profile_runs_take(r), -E2BIG);
    profile_runs_end(r);
    assert_int_equal(r->profile.step[0].ns, 4);
    assert_int_equal(r->profile.step[1].ns, 80);
    profile_runs_free(r);
    profile_runs_free(NULL);
}

static void test_other_steps_are_refused(void **state)
{
    const int64_t ns[3] = {1, 2, 3};
    struct profile_runs *r;

    (void)state;
    assert_int_equal(profile_runs_new(&r, 5), 0);
    run_of(&r->profile, 2, ns);
    assert_int_equal(profile_runs_take(r), 0);
    run_of(&r->profile, 3, ns);
    assert_int_equal(profile_runs_take(r), -EINVAL);
    run_of(&r->profile, 1, ns);
    assert_int_equal(profile_runs_take(r), -EINVAL);
    profile_runs_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_product_is_there),
        cmocka_unit_test(test_steps_say_what_they_are),
        cmocka_unit_test(test_times_are_those_of_the_inference),
        cmocka_unit_test(test_seeing_belongs_to_it),
        cmocka_unit_test(test_more_steps_than_there_is_room),
        cmocka_unit_test(test_medians),
        cmocka_unit_test(test_other_steps_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
