// kernels: what this process computes with, by one name: for logs, recordings, and whoever must
// compute as another machine did. The name is that of an instruction set (cpu.h), or
//
//   openblas   the generic kernels, but matrix products are OpenBLAS's (gemm_blas.c)
//
// which is the choice on an x86-64 with AVX and without AVX2 and FMA. Its bits are those of
// OpenBLAS's own kernels (openblas_get_corename), for one number of threads; the others' are the
// same wherever they run, with any number.
#ifndef ACTD_KERNELS_KERNELS_H
#define ACTD_KERNELS_KERNELS_H

#include <stdbool.h>

#include "policy/kernels/precision.h"

// "avx2", …, "openblas"; in 8 bits "avx2 vnni", "avx512 vnni" where the processor has products of
// bytes (cpu.h). Any thread.
const char *kernels_name(enum precision p);
// A few words on why: "the processor has AVX2 and FMA, and not all of AVX-512 F, BW, DQ, VL", or
// "asked for, not the best that this processor runs". Any thread.
const char *kernels_why(void);
// plain, before the first policy is loaded. NULL or "": the best. 0, -EINVAL when there is no such
// name, or -ENOTSUP: this machine can not.
int kernels_choose(const char *name);
// Are the products OpenBLAS's? Any thread.
bool kernels_blas(void);

#endif
