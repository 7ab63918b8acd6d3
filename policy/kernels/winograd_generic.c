#include "policy/kernels/winograd_priv.h"

#include "policy/kernels/vec.h"

static inline v4f relu(v4f x)
{
    return (v4f)(~(x < v4_splat(0.0f)) & (v4i)x);
}

#define WIDTH         4
#define NAME(x)       x##_4
#define VECTOR        v4f
#define SET(x)        v4_splat((float)(x))
#define LOAD(p)       v4_load(p)
#define STORE(p, v)   v4_store(p, v)
#define FMA(a, b, c)  ((a) * (b) + (c))
#define FNMA(a, b, c) ((c) - (a) * (b))
#define RELU(v)       relu(v)
#include "policy/kernels/winograd_body.h"

static void input(int m, const struct winograd_input *i)
{
    (void)inputs_4(m, i);
}

static void output(int m, const struct winograd_output *o)
{
    (void)outputs_4(m, o);
}

const struct winograd_transforms winograd_transforms_generic = {CPU_GENERIC, input,
                                                                output};

const struct winograd_transforms *winograd_transforms_of(enum cpu_isa isa)
{
    switch (isa) {
    case CPU_GENERIC:
        return &winograd_transforms_generic;
#ifdef __x86_64__
    case CPU_AVX2:
        return &winograd_transforms_avx2;
    case CPU_AVX512:
        return &winograd_transforms_avx512;
#endif
#ifdef __aarch64__
    case CPU_NEON:
        return &winograd_transforms_neon;
#endif
    default:
        return NULL;
    }
}
