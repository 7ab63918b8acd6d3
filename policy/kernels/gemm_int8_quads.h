// gemm_int8_quads: 16 depths on x86 without a dot product of bytes: see gemm_int8_avx2.c. Whoever
// includes it has defined BYTES, a vector of them, LOAD(p), SPLAT(quad), MUL(x, w): products of bytes,
// pairs added in 16 bits, ADD(a, b) in 16 bits, WIDEN(a): pairs added in 32 bits; KEEP: how an asm
// statement calls a vector register.
#define NS NV
typedef vi sums[NS];

// One row after the other: if the compiler mixes them, 6 of 8 sums spend the loop in memory.
#define v_keep(x) __asm__ volatile("" : "+" KEEP(x))

INLINE void eight(const int h, sums *sum, const uint8_t *const *p, size_t row,
                  const int8_t *b, const int depth)
{
    BYTES w0[NV], w1[NV];

    UNROLL
    for (int j = 0; j < NV; j++) {
        w0[j] = LOAD(b + (depth * NV + 4 * j) * SIMD_WIDTH);
        w1[j] = LOAD(b + ((depth + 4) * NV + 4 * j) * SIMD_WIDTH);
    }
    UNROLL
    for (int i = 0; i < h; i++) {
        BYTES x0 = SPLAT(gemm_int8_quad(p, row, i, depth));
        BYTES x1 = SPLAT(gemm_int8_quad(p, row, i, depth + 4));
        UNROLL
        for (int j = 0; j < NV; j++)
            sum[i][j] += (vi)WIDEN(ADD(MUL(x0, w0[j]), MUL(x1, w1[j])));
        UNROLL
        for (int j = 0; j < NV; j++)
            v_keep(sum[i][j]);
    }
}

INLINE void sixteen(const int h, sums *sum, const uint8_t *const *p, size_t row,
                    const int8_t *b)
{
    eight(h, sum, p, row, b, 0);
    eight(h, sum, p, row, b, 8);
}

INLINE vi whole(const vi *sum, const int j)
{
    return sum[j];
}
