// bench_count: one inference of a small network, for who counts its instructions
// (tests/bench/count_instructions).
//
//   bench_count make DIR CASE           writes the checkpoint, random weights; cases: d, e, n
//   bench_count infer DIR ISA [int8]    loads it (which infers once), infers
//
// Client requests say when: callgrind with --instr-atstart=no counts that inference alone.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/kernels/cpu.h"
#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define COUNTS 1
#endif
#endif
#ifndef COUNTS // built where there was no valgrind
#define COUNTS                          0
#define CALLGRIND_START_INSTRUMENTATION (void)0
#define CALLGRIND_STOP_INSTRUMENTATION  (void)0
#endif

// Like the standard cases d and e, but far smaller: a fused multiply-add is a call of a function to
// valgrind, 40 ns for each number, and e as it is takes it 20 s. d's picture is just large enough for
// convolutions in tiles of 4x4: 12 of them (conv_plan.c). n is d without a camera: to load a policy in
// 8 bits takes a dozen inferences, and with one they take valgrind 20 s.
static int make(const char *dir, const char *name)
{
    struct act_fixture f = act_fixture_tiny();

    f.camera[0] = (struct act_fixture_camera){"observation.images.front", 32, 32};
    f.dim_model = 96;
    f.n_heads = 3;
    f.dim_feedforward = 400;
    f.n_encoder_layers = 4;
    f.chunk_size = 25;
    f.latent_dim = 32;
    if (strcmp(name, "d") == 0 || strcmp(name, "n") == 0) {
        f.camera[0].height = 48;
        f.camera[0].width = 64;
        f.n_cameras = strcmp(name, "d") == 0;
        f.env_dim = f.n_cameras ? 0 : 3;
        f.dim_model = 128;
        f.n_heads = 2;
        f.dim_feedforward = 800;
        f.chunk_size = 33;
    } else if (strcmp(name, "e") != 0) {
        return -EINVAL;
    }
    return act_fixture_write(dir, &f);
}

static int load(struct policy **p, const char *dir, const char *isa,
                enum precision precision)
{
    struct policy_options opt = {.threads = 1, .precision = precision};
    struct policy_error err;

    if (cpu_isa_of(isa) == CPU_ISAS || cpu_choose(cpu_isa_of(isa)) != 0) {
        fprintf(stderr, "bench_count: %s does not run here\n", isa);
        return -ENOTSUP;
    }
    int rc = policy_load(p, dir, &opt, &err);
    if (rc)
        fprintf(stderr, "bench_count: %s\n", err.text);
    return rc;
}

static int infer(struct policy *p)
{
    static uint8_t rgb[48 * 64 * 3];
    static float actions[100 * 6];
    const struct policy_info *info = policy_describe(p);
    const float state[6] = {0.25f, -0.5f, 0.125f};
    const struct policy_image image = {.rgb = rgb,
                                       .width = info->camera[0].width,
                                       .height = info->camera[0].height,
                                       .stride = 3 * info->camera[0].width};
    const struct policy_observation obs = {.state = state, .env = state, .image = &image};

    for (size_t i = 0; i < sizeof rgb; i++)
        rgb[i] = (uint8_t)act_fixture_mix(i);
    CALLGRIND_START_INSTRUMENTATION;
    int rc = policy_infer(p, &obs, actions, NULL);
    CALLGRIND_STOP_INSTRUMENTATION;
    printf("answer %.6g\n", (double)actions[0]);
    return rc;
}

int main(int argc, char **argv)
{
    struct policy *p = NULL;
    int rc = -EINVAL;

    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        rc = make(argv[2], argv[3]);
    } else if ((argc == 4 || (argc == 5 && strcmp(argv[4], "int8") == 0)) &&
               strcmp(argv[1], "infer") == 0) {
        rc = COUNTS ? load(&p, argv[2], argv[3],
                           argc == 5 ? PRECISION_INT8 : PRECISION_FLOAT32)
                    : -ENOSYS;
        if (rc == -ENOSYS)
            fprintf(stderr, "bench_count: built without valgrind's headers\n");
        if (rc == 0)
            rc = infer(p);
        policy_free(p);
    } else {
        fprintf(stderr, "usage: bench_count make DIR d|e|n | infer DIR ISA [int8]\n");
        return 2;
    }
    if (rc)
        fprintf(stderr, "bench_count: %s\n", strerror(-rc));
    return rc ? 1 : 0;
}
