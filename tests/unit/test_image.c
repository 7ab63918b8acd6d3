// image: against values that torch and LeRobot computed, against a naive twin in double, and to
// the bit where no resampling is done.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "policy/image.h"

static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};

// torch 2.11 on CPU: pixels from grow(), / 255, F.interpolate(bilinear, align_corners=False,
// antialias=False) or LeRobot 0.6.1's resize_with_pad(pad_value=0), then (x - mean) / (std + 1e-8).
// clang-format off
static const float torch_same[] = {
    -1.07329392f, 1.9406625f, -0.542426586f, 2.18040895f, -0.148557276f, 1.289922f,
    -0.0458087698f, -0.0115592657f, 1.52966845f, 2.18040895f, -0.131432533f,
    0.604931891f, 2.04341722f, -1.82563007f, -1.80812311f, 2.32352924f, 0.415266186f,
    1.44817924f, 1.78081214f, -1.63305306f, -0.442576945f, -1.49299705f, -1.56302512f,
    1.41316521f, 0.914509952f, 2.01254892f, -1.50814807f, 0.565926075f, 0.879651546f,
    0.0604793727f, -0.200958505f, 1.5245316f, -1.02013063f, 0.217342108f, -1.29899776f,
    -1.43843126f,
};
static const float torch_shrink[] = {
    -0.769329607f, -1.62414014f, -0.924879372f, -0.01798095f, 0.187515944f,
    0.407997161f, 1.12723696f, -0.221337408f, -0.471787125f, 0.359476894f, 0.694122851f,
    -0.804292262f, 0.0643966943f, 0.731851161f, -0.217903644f, -0.47321412f,
    1.36502087f, -0.173406795f, -1.24571061f, 1.41316497f, 0.941934347f, -0.335346729f,
    0.103787109f, 0.66911757f, 0.136006013f, -0.0607988536f, 0.823732853f, 0.248569369f,
    1.19773424f, -0.802265644f, -1.64104557f, -0.438431233f, 0.141089618f, -0.43479985f,
    1.72061002f, -0.231459662f,
};
static const float torch_grow[] = {
    -1.07329392f, -1.27512145f, -1.59804535f, -0.747923315f, 0.0655019879f,
    -0.550989091f, -0.936295867f, -0.902046323f, -1.16748011f, -1.59217393f,
    -0.357478946f, 0.799908876f, -0.243232876f, -0.895196378f, -0.645175099f,
    -1.00601816f, -1.58336699f, 0.22818765f, 1.90151978f, 0.218401298f, -0.833547354f,
    -0.429403156f, -0.19944194f, 0.168495804f, 0.4079974f, 0.566523135f, 0.286656141f,
    0.111739181f, -0.285555303f, 0.338275075f, 1.33640313f, 0.527870119f, -0.323474109f,
    0.332159221f, 0.741929948f, -0.407562941f, -0.382552952f, -0.342536956f,
    0.231442824f, 0.674119294f, -0.336284727f, -0.967787027f, -0.512604952f,
    -0.345037937f, -0.0769306943f, 0.0668768063f, 0.121398285f, -0.324779958f,
    -0.60364145f, -0.670167923f, -0.28876546f, 0.321478814f, -0.179972082f,
    -0.707682848f, -0.307522804f, -0.0574229509f, 0.0336136892f, -0.196478575f,
    -0.564625978f, 0.119397938f, 0.84543848f, 0.813425422f, 0.793417454f, 0.50280118f,
    -0.134953946f, -1.15536213f, 0.318978071f, 1.88085186f, 1.5607239f, 1.36064422f,
    -1.64758158f, -0.75744766f, 0.666766286f, 0.879651546f, 1.02406514f, 1.90050447f,
    2.4482789f, -0.378736109f, -0.00649849558f, 0.589081824f, 0.973769128f, 1.25910974f,
    1.059919f, 0.935424805f, 1.5245316f, 1.11992526f, 0.47255528f, 1.11494577f,
    1.61167681f, -0.200959042f, -1.33385611f, -0.012723472f, 0.17650789f, 0.479278147f,
    1.32932484f, 2.00607491f, 0.922477365f, 0.245229125f, -1.03755975f, -0.452436715f,
    0.48375988f, 1.47224438f, 2.26900673f, 1.67143488f, 1.29795194f,
};
static const float torch_mixed[] = {
    0.863943756f, 0.863943756f, 0.251020133f, -0.361903101f, -0.974826634f,
    -0.974826634f, -0.942717671f, -0.942717671f, -0.136427209f, 0.669863224f,
    1.47615373f, 1.47615337f, 2.04983282f, 2.04983306f, 1.07586277f, 0.101892442f,
    -0.872077942f, -0.872077942f, 0.527870417f, 0.527870417f, -0.0308247097f,
    -0.58951968f, -1.1482147f, -1.1482147f, 0.264268219f, 0.264268219f, 0.16943869f,
    0.0746090412f, -0.0202204753f, -0.0202206075f, -1.21726179f, -1.21726179f,
    -1.21215558f, -1.20704925f, -1.20194328f, -1.20194316f, -1.41859221f, -1.41859221f,
    -1.28072464f, -1.14285696f, -1.00498939f, -1.00498939f, -1.69651592f, -1.69651592f,
    -1.26175869f, -0.827001452f, -0.392244279f, -0.392244279f, -0.27503252f,
    -0.27503252f, -0.00342766428f, 0.268177301f, 0.539782166f, 0.539782166f,
    0.720610201f, 0.720610201f, 0.202091664f, -0.316426873f, -0.834945381f,
    -0.834945381f, 2.03869271f, 2.03869295f, 1.68139434f, 1.32409608f, 0.966797471f,
    0.966797471f, 1.8535074f, 1.8535074f, 1.04305017f, 0.232592553f, -0.577864766f,
    -0.577864766f,
};
static const float torch_letterbox_top[] = {
    -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f,
    -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f,
    -0.0158405192f, -0.289836407f, -0.816422582f, 0.108314127f, 0.793304205f,
    -0.418272048f, 1.02876961f, -1.10754335f, -0.833547354f, -0.610925555f,
    0.313811153f, -0.550988913f, 0.0783457458f, -0.0415275171f, 0.172531754f,
    -0.495333433f, 0.493621171f, -0.687986851f, 0.0355339944f, -0.0458087698f,
    0.202500135f, 0.840397298f, 0.356622905f, 0.502183437f, -2.03571415f, -2.03571415f,
    -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f,
    -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f, -0.245623127f, 0.353991807f,
    2.11344528f, -0.425069958f, 0.0519960001f, 0.402135879f, 0.165791363f, -1.22601521f,
    0.572829187f, 0.61221987f, -0.123074137f, -0.20185563f, -0.0661764517f,
    -0.902135789f, -0.394432634f, -0.731442451f, -0.109943949f, 0.476540565f,
    1.33000684f, 0.244572863f, 1.81582618f, -0.311274439f, -0.0749299526f, -0.20185563f,
    -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f,
    -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f,
    0.565926075f, -0.601829946f, 0.949368298f, -0.131241739f, -0.806622982f,
    0.151982695f, -0.915555477f, 0.709716856f, 0.169411898f, 0.661786497f, 0.234771296f,
    0.147625461f, 0.605141699f, 1.40688479f, -0.074596934f, -0.113812551f, 1.33281052f,
    0.108409584f, 0.722788811f, 0.470065385f, -0.34910664f, 0.313202649f, 0.522352993f,
    0.252200484f,
};
static const float torch_letterbox_left[] = {
    -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, -0.154265523f, 1.60244858f,
    -0.399719775f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f, 0.162542373f,
    0.382310152f, 1.29134905f, -2.11790395f, -2.11790395f, -2.11790395f, -2.11790395f,
    -0.269857675f, -1.57847404f, 0.750492156f, -2.11790395f, -2.11790395f, -2.11790395f,
    -2.11790395f, -0.616633832f, -1.05188799f, 0.686274529f, -2.11790395f, -2.11790395f,
    -2.11790395f, -2.11790395f, 0.460798532f, -0.486771047f, 0.766189814f, -2.11790395f,
    -2.11790395f, -2.11790395f, -2.11790395f, -0.301253051f, -1.14179301f,
    -0.432542682f, -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f, -1.26248825f,
    0.791666567f, 1.25122547f, -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f,
    -0.13328661f, -1.0203079f, -0.954656482f, -2.03571415f, -2.03571415f, -2.03571415f,
    -2.03571415f, 0.491129845f, -1.06407547f, 1.32708919f, -2.03571415f, -2.03571415f,
    -2.03571415f, -2.03571415f, -1.14577496f, -0.486344457f, 0.41672489f, -2.03571415f,
    -2.03571415f, -2.03571415f, -2.03571415f, 1.18703294f, -1.22601521f, 0.140990123f,
    -2.03571415f, -2.03571415f, -2.03571415f, -2.03571415f, -0.581174076f,
    -0.477590948f, 1.13451195f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f,
    0.992941439f, 1.45481491f, -0.259055555f, -1.80444431f, -1.80444431f, -1.80444431f,
    -1.80444431f, 1.22823536f, 1.59860563f, 0.337894201f, -1.80444431f, -1.80444431f,
    -1.80444431f, -1.80444431f, 0.669048727f, 0.618213654f, 0.731503248f, -1.80444431f,
    -1.80444431f, -1.80444431f, -1.80444431f, -0.485635459f, -0.675904036f,
    0.561568856f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f, 1.92685533f,
    -1.02013063f, 0.70971632f, -1.80444431f, -1.80444431f, -1.80444431f, -1.80444431f,
    1.12075555f, -0.026666455f, -0.0876688957f,
};
// clang-format on

static const struct golden {
    const char *what;
    int h, w, height, width;
    uint32_t seed;
    enum policy_resize resize;
    const float *want;
    size_t n;
    float tolerance;
} golden[] = {
    {"same", 3, 4, 3, 4, 7, POLICY_RESIZE_REFUSE, torch_same, sizeof torch_same, 0},
    {"shrink", 5, 7, 3, 4, 11, POLICY_RESIZE_STRETCH, torch_shrink, sizeof torch_shrink,
     4e-6f},
    {"grow", 3, 4, 5, 7, 12, POLICY_RESIZE_STRETCH, torch_grow, sizeof torch_grow, 4e-6f},
    {"mixed", 9, 2, 4, 6, 13, POLICY_RESIZE_STRETCH, torch_mixed, sizeof torch_mixed,
     4e-6f},
    {"letterbox top", 8, 12, 6, 6, 21, POLICY_RESIZE_LETTERBOX, torch_letterbox_top,
     sizeof torch_letterbox_top, 4e-6f},
    {"letterbox left", 9, 5, 6, 7, 22, POLICY_RESIZE_LETTERBOX, torch_letterbox_left,
     sizeof torch_letterbox_left, 4e-6f},
};

static struct norm imagenet(void)
{
    struct norm_stats s = {.n = 3, .mean = mean, .std = std};
    struct policy_error err;
    struct norm m;

    assert_int_equal(norm_build(&m, "image", NORM_MEAN_STD, 3, &s, 1e-8, false, &err), 0);
    return m;
}

static void grow(uint8_t *out, size_t n, uint32_t s)
{
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        out[i] = (uint8_t)(s >> 24);
    }
}

// A frame on the heap with exactly its own bytes, so that ASan sees any byte read too many; the
// gap between rows is poisoned with a value that would show.
static struct policy_image frame(int h, int w, int gap, uint32_t seed, uint8_t **memory)
{
    size_t stride = (size_t)w * 3 + (size_t)gap, n = stride * (size_t)h - (size_t)gap;
    uint8_t *dense = malloc((size_t)h * (size_t)w * 3), *p = malloc(n);

    assert_non_null(dense);
    assert_non_null(p);
    grow(dense, (size_t)h * (size_t)w * 3, seed);
    memset(p, 255, n);
    for (int y = 0; y < h; y++)
        memcpy(p + (size_t)y * stride, dense + (size_t)y * (size_t)w * 3, (size_t)w * 3);
    free(dense);
    *memory = p;
    return (struct policy_image){
        .rgb = p, .width = w, .height = h, .stride = (int)stride};
}

static void test_golden(void **state)
{
    struct norm m = imagenet();

    (void)state;
    for (size_t k = 0; k < sizeof golden / sizeof golden[0]; k++)
        for (int gap = 0; gap <= 5; gap += 5) {
            const struct golden *g = &golden[k];
            float *got = malloc(g->n);
            uint8_t *memory;
            struct policy_image im = frame(g->h, g->w, gap, g->seed, &memory);

            assert_non_null(got);
            assert_int_equal(g->n,
                             sizeof(float) * 3 * (size_t)g->height * (size_t)g->width);
            assert_int_equal(
                image_to_planes(&im, g->resize, &m, g->height, g->width, got), 0);
            for (size_t i = 0; i < g->n / sizeof(float); i++)
                if (!(fabsf(got[i] - g->want[i]) <= g->tolerance))
                    fail_msg("%s[%zu]: %.9g, torch says %.9g", g->what, i, (double)got[i],
                             (double)g->want[i]);
            free(got);
            free(memory);
        }
    norm_free(&m);
}

// Bilinear in double straight from the definition, of one channel, without normalisation.
static double twin(const struct policy_image *im, int c, double sy, double sx)
{
    double y = fmax(sy, 0), x = fmax(sx, 0), v = 0;

    for (int dy = 0; dy <= 1; dy++)
        for (int dx = 0; dx <= 1; dx++) {
            int iy = (int)floor(y) + dy, ix = (int)floor(x) + dx;
            double wy = dy ? y - floor(y) : 1 - (y - floor(y));
            double wx = dx ? x - floor(x) : 1 - (x - floor(x));

            iy = iy > im->height - 1 ? im->height - 1 : iy;
            ix = ix > im->width - 1 ? im->width - 1 : ix;
            v += wy * wx *
                 im->rgb[(size_t)iy * (size_t)im->stride + (size_t)ix * 3 + (size_t)c];
        }
    return v / 255.0;
}

static double worst_against_twin(const struct policy_image *im, enum policy_resize resize,
                                 const struct norm *m, int height, int width, float *got)
{
    int top = 0, left = 0, h = height, w = width;
    double worst = 0;

    if (resize == POLICY_RESIZE_LETTERBOX) {
        double r = fmax((double)im->width / width, (double)im->height / height);

        h = (int)(im->height / r) > 1 ? (int)(im->height / r) : 1;
        w = (int)(im->width / r) > 1 ? (int)(im->width / r) : 1;
        top = height - h;
        left = width - w;
    }
    assert_int_equal(image_to_planes(im, resize, m, height, width, got), 0);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                double v = 0, g = (double)*got++ * std[c] + mean[c];

                if (y >= top && x >= left)
                    v = twin(im, c, (y - top + 0.5) * im->height / h - 0.5,
                             (x - left + 0.5) * im->width / w - 0.5);
                worst = fmax(worst, fabs(g - v));
            }
    return worst;
}

static void test_twin(void **state)
{
    static const int sizes[][4] = {
        {1, 1, 1, 1},     {1, 1, 5, 3},         {5, 3, 1, 1},         {2, 1000, 3, 7},
        {1000, 2, 7, 3},  {96, 96, 64, 48},     {33, 77, 61, 300},    {61, 300, 33, 77},
        {7, 600, 9, 513}, {480, 640, 224, 224}, {240, 320, 480, 640}, {1, 4000, 2, 2},
        {37, 41, 37, 40}, {97, 131, 96, 131},
    };
    struct norm m = imagenet();

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int r = POLICY_RESIZE_STRETCH; r <= POLICY_RESIZE_LETTERBOX; r++) {
            const int *s = sizes[k];
            float *got = malloc(sizeof *got * 3 * (size_t)s[2] * (size_t)s[3]);
            uint8_t *memory;
            struct policy_image im = frame(s[0], s[1], 0, 99u + (uint32_t)k, &memory);
            double worst;

            assert_non_null(got);
            worst = worst_against_twin(&im, (enum policy_resize)r, &m, s[2], s[3], got);
            if (!(worst <= 1e-4)) // of full scale
                fail_msg("%dx%d to %dx%d, mode %d: worst %g", s[1], s[0], s[3], s[2], r,
                         worst);
            free(got);
            free(memory);
        }
    norm_free(&m);
}

// All 256 values in each channel and each mode, to the bit, as the tensor path computes them.
static void test_every_value(void **state)
{
    static const float lo[] = {0.0f, 0.01f, -0.5f}, hi[] = {1.0f, 0.97f, 0.75f};
    struct norm_stats s = {3, mean, std, lo, hi, lo, lo, hi, hi};
    uint8_t rgb[256 * 3];
    float got[3 * 256], in[3], want[3];

    (void)state;
    for (int v = 0; v < 256; v++)
        memset(rgb + 3 * v, v, 3);
    for (int mode = NORM_IDENTITY; mode <= NORM_QUANTILE10; mode++) {
        struct policy_image im = {.rgb = rgb, .width = 16, .height = 16, .stride = 48};
        struct policy_error err;
        struct norm m;

        assert_int_equal(
            norm_build(&m, "i", (enum norm_mode)mode, 3, &s, 1e-8, false, &err), 0);
        assert_int_equal(image_to_planes(&im, POLICY_RESIZE_STRETCH, &m, 16, 16, got), 0);
        for (int v = 0; v < 256; v++) {
            in[0] = in[1] = in[2] = (float)v / 255.0f;
            norm_apply(&m, in, want, 1);
            for (int c = 0; c < 3; c++)
                assert_true(got[c * 256 + v] == want[c]);
        }
        norm_free(&m);
    }
}

static void test_refused(void **state)
{
    uint8_t rgb[4 * 5 * 3] = {0};
    struct norm m = imagenet(), two = m;
    const struct policy_image ok = {.rgb = rgb, .width = 5, .height = 4, .stride = 15};
    struct policy_image bad[6] = {ok, ok, ok, ok, ok, ok};
    float got[3 * 4 * 5] = {-77.0f};

    (void)state;
    two.n = 2;
    bad[0].rgb = NULL;
    bad[1].width = 0;
    bad[2].height = -4;
    bad[3].stride = 14;
    bad[4].stride = -15;
    bad[5].width = INT32_MAX;
    for (int resize = 0; resize <= 2; resize++) {
        enum policy_resize r = (enum policy_resize)resize;

        for (size_t i = 0; i < 6; i++)
            assert_int_equal(image_to_planes(&bad[i], r, &m, 4, 5, got), -EINVAL);
        assert_int_equal(image_to_planes(NULL, r, &m, 4, 5, got), -EINVAL);
        assert_int_equal(image_to_planes(&ok, r, NULL, 4, 5, got), -EINVAL);
        assert_int_equal(image_to_planes(&ok, r, &two, 4, 5, got), -EINVAL);
        assert_int_equal(image_to_planes(&ok, r, &m, 0, 5, got), -EINVAL);
        assert_int_equal(image_to_planes(&ok, r, &m, 4, -5, got), -EINVAL);
        assert_int_equal(image_to_planes(&ok, r, &m, 4, 5, NULL), -EINVAL);
    }
    assert_int_equal(image_to_planes(&ok, POLICY_RESIZE_REFUSE, &m, 5, 4, got), -EINVAL);
    assert_int_equal(image_to_planes(&ok, POLICY_RESIZE_REFUSE, &m, 4, 4, got), -EINVAL);
    assert_true(got[0] == -77.0f); // untouched
    assert_int_equal(image_to_planes(&ok, POLICY_RESIZE_REFUSE, &m, 4, 5, got), 0);
    norm_free(&m);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Printed, and bounded far above what it takes so that a loaded machine does not fail it.
static void test_speed(void **state)
{
    static const int from[][2] = {{480, 640}, {1080, 1920}};
    struct norm m = imagenet();
    float *got = malloc(sizeof *got * 3 * 480 * 640);

    (void)state;
    assert_non_null(got);
    for (int k = 0; k < 2; k++) {
        uint8_t *memory;
        struct policy_image im = frame(from[k][0], from[k][1], 0, 5, &memory);
        double best = 1e9;

        for (int i = 0; i < 5; i++) {
            double start = seconds();

            assert_int_equal(
                image_to_planes(&im, POLICY_RESIZE_STRETCH, &m, 480, 640, got), 0);
            best = fmin(best, seconds() - start);
        }
        print_message("%dx%d to 640x480: %.2f ms\n", from[k][1], from[k][0], best * 1e3);
        assert_true(best < 0.1);
        free(memory);
    }
    free(got);
    norm_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),      cmocka_unit_test(test_twin),
        cmocka_unit_test(test_every_value), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_speed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
