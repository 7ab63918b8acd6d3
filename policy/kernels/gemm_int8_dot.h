// gemm_int8_dot: 16 depths on x86 with a dot product of bytes. Whoever includes it has defined BYTES, a
// vector of them, LOAD(p), SPLAT(quad), DOT(sum, x, w): each lane's four products added to its sum.
#define NS NV
typedef vi sums[NS];

INLINE void sixteen(const int h, sums *sum, const uint8_t *const *p, size_t row,
                    const int8_t *b)
{
    UNROLL
    for (int depth = 0; depth < 16; depth += 4) {
        BYTES w[NV];
        UNROLL
        for (int j = 0; j < NV; j++)
            w[j] = LOAD(b + (depth * NV + 4 * j) * SIMD_WIDTH);
        UNROLL
        for (int i = 0; i < h; i++) {
            BYTES x = SPLAT(gemm_int8_quad(p, row, i, depth));
            UNROLL
            for (int j = 0; j < NV; j++)
                sum[i][j] = (vi)DOT((BYTES)sum[i][j], x, w[j]);
        }
    }
}

INLINE vi whole(const vi *sum, const int j)
{
    return sum[j];
}
