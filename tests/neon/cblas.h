// The one function of a BLAS that the kernels' tests compare with, as a textbook has it: a cross
// compiler has no OpenBLAS. Row-major only.
#ifndef ACTD_TESTS_NEON_CBLAS_H
#define ACTD_TESTS_NEON_CBLAS_H

enum CBLAS_ORDER { CblasRowMajor = 101 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112 };

static inline void openblas_set_num_threads(int n)
{
    (void)n;
}

static inline void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a,
                               enum CBLAS_TRANSPOSE trans_b, int m, int n, int k,
                               float alpha, const float *a, int lda, const float *b,
                               int ldb, float beta, float *c, int ldc)
{
    (void)order;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int l = 0; l < k; l++)
                sum += (trans_a == CblasTrans ? a[l * lda + i] : a[i * lda + l]) *
                       (trans_b == CblasTrans ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = alpha * sum + (beta != 0.0f ? beta * c[i * ldc + j] : 0.0f);
        }
}

#endif
