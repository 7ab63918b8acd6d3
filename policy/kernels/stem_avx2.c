// 12 sums, 2 vectors of the weights and one of the tiles fill the 16 registers.
#include "policy/kernels/stem_priv.h"

#ifdef __x86_64__
#define SIMD_AVX2
#define STEM_NAME stem_kernel_avx2
#define STEM_ISA  CPU_AVX2
#define TILES     6
#define KEEP      "x"
#include "policy/kernels/stem_body.h"
#endif
