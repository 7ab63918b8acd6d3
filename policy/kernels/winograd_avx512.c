#include "policy/kernels/winograd_priv.h"

#ifdef __x86_64__
#include <immintrin.h>

#define WIDTH         16
#define NAME(x)       x##_16
#define VECTOR        __m512
#define SET(x)        _mm512_set1_ps((float)(x))
#define LOAD(p)       _mm512_loadu_ps(p)
#define STORE(p, v)   _mm512_storeu_ps(p, v)
#define FMA(a, b, c)  _mm512_fmadd_ps(a, b, c)
#define FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c)
#define RELU(v)       _mm512_max_ps(_mm512_setzero_ps(), v) // the second, if one is a NaN
#include "policy/kernels/winograd_body.h"

#define WIDTH         4
#define NAME(x)       x##_4
#define VECTOR        __m128
#define SET(x)        _mm_set1_ps((float)(x))
#define LOAD(p)       _mm_loadu_ps(p)
#define STORE(p, v)   _mm_storeu_ps(p, v)
#define FMA(a, b, c)  _mm_fmadd_ps(a, b, c)
#define FNMA(a, b, c) _mm_fnmadd_ps(a, b, c)
#define RELU(v)       _mm_max_ps(_mm_setzero_ps(), v)
#include "policy/kernels/winograd_body.h"

static void input(int m, const struct winograd_input *i)
{
    int done = inputs_16(m, i);

    if (done < i->channels) {
        struct winograd_input rest = *i;
        rest.d += done, rest.v += done, rest.channels -= done;
        (void)inputs_4(m, &rest);
    }
}

static void output(int m, const struct winograd_output *o)
{
    int done = outputs_16(m, o);

    if (done < o->channels) {
        struct winograd_output rest = *o;
        rest.q += done, rest.bias += done, rest.y += done, rest.channels -= done;
        (void)outputs_4(m, &rest);
    }
}

const struct winograd_transforms winograd_transforms_avx512 = {CPU_AVX512, input, output};
#endif
