// Golden resizing: uint8 frames of noise through torch's bilinear interpolation (stretch) and
// LeRobot's resize_with_pad (letterbox) against image_to_planes. Values in [0, 1], not
// normalised; the planes of whole policies are compared in test_golden.c.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "policy/image.h"
#include "tests/golden_gen.h"

#define DIR_IMAGES "tests/data/golden/images"
#define BOUND      1e-4 // of full scale

static int dimension(json_t *resize, const char *key, size_t i)
{
    return (int)json_integer_value(json_array_get(json_object_get(resize, key), i));
}

// Runs one entry and returns the worst difference.
static double compare(json_t *entry, uint64_t seed, const float *expected, size_t *used)
{
    int h0 = dimension(entry, "from", 0), w0 = dimension(entry, "from", 1);
    int h = dimension(entry, "to", 0), w = dimension(entry, "to", 1);
    const char *mode = json_string_value(json_object_get(entry, "mode"));
    size_t n0 = (size_t)h0 * (size_t)w0 * 3, n = (size_t)h * (size_t)w * 3;
    uint8_t *rgb = malloc(n0);
    float *chw = calloc(n, sizeof(*chw));
    char name[32];
    struct norm none;
    struct policy_error err;
    double worst = 0;

    snprintf(name, sizeof(name), "%dx%d", h0, w0);
    golden_image(seed, name, rgb, n0);
    struct policy_image image = {.rgb = rgb, .width = w0, .height = h0, .stride = w0 * 3};
    assert_int_equal(
        norm_build(&none, "image", NORM_IDENTITY, 3, NULL, 1e-8, false, &err), 0);
    int rc = image_to_planes(
        &image, strcmp(mode, "stretch") ? POLICY_RESIZE_LETTERBOX : POLICY_RESIZE_STRETCH,
        &none, h, w, chw);
    assert_int_equal(rc, 0);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)chw[i] - (double)expected[i]));
    norm_free(&none);
    free(rgb);
    free(chw);
    *used += n;
    return worst;
}

static void test_resizes(void **state)
{
    json_t *json = json_load_file(DIR_IMAGES "/case.json", 0, NULL), *entry;
    json_t *list = json_object_get(json, "resizes");
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(json, "seed"));
    FILE *f = fopen(DIR_IMAGES "/expected.f32", "rb");
    size_t i, at = 0, max = 1 << 20;
    float *expected = calloc(max, sizeof(*expected));
    double all = 0;

    (void)state;
    assert_non_null(f);
    assert_true(json_array_size(list) >= 18);
    size_t n = fread(expected, sizeof(*expected), max, f);
    fclose(f);
    json_array_foreach(list, i, entry)
    {
        double worst = compare(entry, seed, expected + at, &at);
        all = fmax(all, worst);
        if (!(worst <= BOUND))
            fail_msg("resize %zu differs by %.2g of full scale, bound %g", i, worst,
                     BOUND);
    }
    assert_int_equal(at, n);
    print_message("  resized %.1e\n", all);
    free(expected);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resizes),
    };

    return cmocka_run_group_tests_name("golden images", tests, NULL, NULL);
}
