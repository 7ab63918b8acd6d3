// 24 sums, 2 vectors of the weights and those of the tiles fill the 32 registers.
#include "policy/kernels/stem_priv.h"

#ifdef __x86_64__
#define SIMD_AVX512
#define STEM_NAME stem_kernel_avx512
#define STEM_ISA  CPU_AVX512
#define TILES     12
#define KEEP      "v"
#include "policy/kernels/stem_body.h"
#endif
