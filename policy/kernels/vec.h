// vec: four floats at a time in the compiler's own vector type: vector code at -O2, with gcc and
// clang alike, and the same bits on every x86-64 and ARM machine, since all lanes are independent
// and nothing is contracted. For what is for no instruction set in particular; simd.h is for them.
#ifndef ACTD_KERNELS_VEC_H
#define ACTD_KERNELS_VEC_H

#include <stdint.h>
#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static inline v4f v4_load(const float *p)
{
    v4f v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void v4_store(float *p, v4f v)
{
    memcpy(p, &v, sizeof v);
}

static inline v4f v4_splat(float x)
{
    return (v4f){x, x, x, x};
}

// where mask is all ones a, elsewhere b
static inline v4f v4_select(v4i mask, v4f a, v4f b)
{
    return (v4f)((mask & (v4i)a) | (~mask & (v4i)b));
}

#endif
