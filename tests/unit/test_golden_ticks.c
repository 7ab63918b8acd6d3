// Golden ticks: 300 ticks of LeRobot's own select_action, with its action queue and with its
// temporal ensembler, against chunks. Chunks come from the generator on both sides; LeRobot
// ensembles normalised actions and un-normalises afterwards, actd the other way round.
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "daemon/chunks.h"
#include "tests/golden_gen.h"

#define DIR_TICKS "tests/data/golden/ticks"
#define STEP_NS   (20 * NS_PER_MS) // any policy period will do
#define BOUND     1e-5

struct run {
    json_t *json;
    int ticks, rows, joints, stride; // one inference every `stride` ticks
    float mean[ACTD_MAX_JOINTS], std[ACTD_MAX_JOINTS];
    uint64_t seed;
    struct chunks *chunks;
    struct chunk *chunk;
};

static int integer(const struct run *r, const char *key)
{
    const json_t *v = json_object_get(r->json, key);

    assert_true(json_is_integer(v));
    return (int)json_integer_value(v);
}

static void run_open(struct run *r, const char *name)
{
    char path[256];

    memset(r, 0, sizeof(*r));
    snprintf(path, sizeof(path), "%s/%s.json", DIR_TICKS, name);
    r->json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(r->json);
    r->ticks = integer(r, "ticks");
    r->rows = integer(r, "rows");
    r->joints = integer(r, "joints");
    r->stride = integer(r, "n_action_steps");
    r->seed = (uint64_t)integer(r, "seed");
    for (int j = 0; j < r->joints; j++) {
        const json_t *mean = json_array_get(json_object_get(r->json, "mean"), (size_t)j);
        const json_t *std = json_array_get(json_object_get(r->json, "std"), (size_t)j);
        r->mean[j] = (float)json_number_value(mean);
        r->std[j] = (float)json_number_value(std);
    }
    r->chunk = calloc(1, chunk_bytes(r->rows, r->joints));
}

static void run_init(struct run *r)
{
    const json_t *coeff = json_object_get(r->json, "temporal_ensemble_coeff");
    struct chunks_config cfg = {.mode = CHUNK_REPLACE,
                                .interpolation = CHUNK_HOLD,
                                .rows = r->stride,
                                .joints = r->joints,
                                .capacity = r->rows + 1,
                                .step_ns = STEP_NS};

    for (int j = 0; j < r->joints; j++)
        cfg.blend[j] = true;
    if (json_is_number(coeff)) {
        cfg.mode = CHUNK_ENSEMBLE;
        cfg.ensemble_coeff = json_number_value(coeff);
        cfg.rows = r->rows;
    }
    assert_int_equal(chunks_init(&r->chunks, &cfg), 0);
}

static void run_close(struct run *r)
{
    chunks_free(r->chunks);
    free(r->chunk);
    json_decref(r->json);
}

// Inference number n, of an observation taken and finished at `now`.
static void push(struct run *r, int n, ns_t now)
{
    char name[32];

    snprintf(name, sizeof(name), "chunk/%d", n);
    r->chunk->id = (uint64_t)n + 1;
    r->chunk->anchor_ns = r->chunk->oldest_ns = r->chunk->ready_ns = now;
    r->chunk->rows = r->rows;
    r->chunk->joints = r->joints;
    golden_floats(r->seed, name, r->chunk->row, (size_t)(r->rows * r->joints), 1.0f,
                  0.0f);
    for (int i = 0; i < r->rows * r->joints; i++)
        r->chunk->row[i] =
            r->chunk->row[i] * r->std[i % r->joints] + r->mean[i % r->joints];
    assert_int_equal(chunks_push(r->chunks, r->chunk, now), CHUNK_USED);
}

static double run_ticks(struct run *r, const float *expected)
{
    struct chunk_target target;
    int inferences = 0;
    double worst = 0;

    for (int t = 0; t < r->ticks; t++) {
        ns_t now = NS_PER_S + t * STEP_NS;

        if (t % r->stride == 0)
            push(r, inferences++, now);
        if (t == 0)
            assert_int_equal(chunks_begin(r->chunks, now), 0);
        assert_int_equal(chunks_target(r->chunks, now, &target), 0);
        for (int j = 0; j < r->joints; j++) {
            double d = fabs(target.pos[j] - (double)expected[t * r->joints + j]);
            worst = isnan(d) ? INFINITY : fmax(worst, d);
        }
    }
    assert_int_equal(inferences, integer(r, "inferences"));
    return worst;
}

static void test_ticks(void **state)
{
    const char *name = *state;
    struct run r;
    char path[256];
    static float expected[300 * ACTD_MAX_JOINTS];

    run_open(&r, name);
    run_init(&r);
    snprintf(path, sizeof(path), "%s/%s.f32", DIR_TICKS, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(expected, sizeof(float), 300 * ACTD_MAX_JOINTS, f),
                     r.ticks * r.joints);
    fclose(f);
    double worst = run_ticks(&r, expected);
    print_message("  commands %.1e\n", worst);
    if (!(worst <= BOUND))
        fail_msg("%s differs by %.2g, bound %g", name, worst, BOUND);
    run_close(&r);
}

#define TICKS(name)                                           \
    {                                                         \
        name, test_ticks, NULL, NULL, (void *)(uintptr_t)name \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TICKS("queue_1"),       TICKS("queue_8"),    TICKS("queue_12"),
        TICKS("ensemble_0.01"), TICKS("ensemble_0"), TICKS("ensemble_-0.1"),
    };

    return cmocka_run_group_tests_name("golden ticks", tests, NULL, NULL);
}
