// 24 sums, 2 vectors of the weights and those of the tiles fill the 32 registers.
#include "policy/kernels/stem_priv.h"

#ifdef __aarch64__
#define SIMD_NEON
#define STEM_NAME stem_kernel_neon
#define STEM_ISA  CPU_NEON
#define TILES     12
#define KEEP      "w"
#include "policy/kernels/stem_body.h"
#endif
