#include "policy/kernels/winograd_priv.h"

#ifdef __aarch64__
#include <arm_neon.h>

#define WIDTH         4
#define NAME(x)       x##_4
#define VECTOR        float32x4_t
#define SET(x)        vdupq_n_f32((float)(x))
#define LOAD(p)       vld1q_f32(p)
#define STORE(p, v)   vst1q_f32(p, v)
#define FMA(a, b, c)  vfmaq_f32(c, a, b)
#define FNMA(a, b, c) vfmsq_f32(c, a, b)
#define RELU(v)       vmaxq_f32(vdupq_n_f32(0.0f), v) // a NaN, if one is a NaN
#include "policy/kernels/winograd_body.h"

static void input(int m, const struct winograd_input *i)
{
    (void)inputs_4(m, i);
}

static void output(int m, const struct winograd_output *o)
{
    (void)outputs_4(m, o);
}

const struct winograd_transforms winograd_transforms_neon = {CPU_NEON, input, output};
#endif
