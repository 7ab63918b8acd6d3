// precision: in what numbers a layer keeps its weights and multiplies.
#ifndef ACTD_KERNELS_PRECISION_H
#define ACTD_KERNELS_PRECISION_H

enum precision {
    PRECISION_FLOAT32,
    PRECISION_BF16, // weights kept in 16 bits (gemm_bf16.h), Winograd's, too; all computed in float
    PRECISION_INT8, // products of 8-bit numbers (gemm_int8.h); everything else in float
};
#define PRECISIONS 3

const char *precision_name(enum precision p); // "float32", "bf16", "int8"; static

#endif
