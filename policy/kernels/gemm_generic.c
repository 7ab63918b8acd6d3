// Tiles of 4 rows by 8 columns in the compiler's own vectors: 8 sums, which leave enough of the 16
// registers that every x86-64 has. A product is rounded before it is added, on every machine alike.
#include "policy/kernels/vec.h"

#define V                  v4f
#define LANES              4
#define MR                 4
#define NV                 2
#define v_load(p)          v4_load(p)
#define v_store(p, x)      v4_store(p, x)
#define v_splat(p)         v4_splat(*(p))
#define v_add(a, b)        ((a) + (b))
#define v_mul_add(a, b, c) ((c) + (a) * (b))
#define v_relu(x)          v4_select((x) < v4_splat(0.0f), v4_splat(0.0f), x)

#include "policy/kernels/gemm_body.h"
#include "policy/kernels/gemm_terms_body.h"

const struct gemm_kernel gemm_generic = {CPU_GENERIC, MR, NR, all_rows, all_terms};
