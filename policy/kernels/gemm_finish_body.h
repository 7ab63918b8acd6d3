// gemm_finish_body: what happens to a tile's sums, once per instruction set; for the bodies of
// gemm.h's and gemm_int8.h's kernels. Whoever includes it has defined V, LANES, MR, NV, v_load,
// v_store, v_add, v_relu: see gemm_body.h.

// Where a tile goes.
struct out {
    float *y;
    size_t stride;
    int columns;
    const struct gemm_finish *finish;
    const float *table; // of the tile's first row
};

// For the last panel, and where the table ends inside one: as below, value by value.
static void finish_edge(int h, const float *sum, const struct out *o)
{
    const struct gemm_finish *f = o->finish;

    for (int i = 0; i < h; i++, sum += NR)
        for (int c = 0; c < o->columns; c++) {
            float *y = o->y + (size_t)i * o->stride + c, v = sum[c];
            v = f->bias ? v + f->bias[c] : v;
            if (o->table && c < f->table_columns)
                v += o->table[(size_t)i * f->table_stride + (size_t)c];
            v = f->accumulate ? v + *y : v;
            *y = f->f == ACTIVATION_RELU && v < 0.0f ? 0.0f : v;
        }
}

INLINE void put(const int h, V (*sum)[NV], float *y, size_t stride)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NV; j++)
            v_store(y + (size_t)i * stride + j * LANES, sum[i][j]);
    }
}

INLINE void add(const int h, V (*sum)[NV], const float *x, size_t stride)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NV; j++)
            sum[i][j] = v_add(sum[i][j], v_load(x + (size_t)i * stride + j * LANES));
    }
}

// What the finish of h rows will read or write, asked for before the last part is multiplied: it is
// in no near cache when weights of 137 MB have gone by since, and lines that lie apart are no stream
// that a processor would foresee. 5 % of the time of a layer with a table (302 x 512 x 1536), 1 to
// 3 % of one without.
INLINE void finish_ahead(const int h, const struct out *o)
{
    UNROLL
    for (int i = 0; i < h; i++) {
        UNROLL
        for (int j = 0; j < NR; j += 16) { // lines
            __builtin_prefetch(o->y + (size_t)i * o->stride + j);
            if (o->table)
                __builtin_prefetch(o->table + (size_t)i * o->finish->table_stride + j);
        }
    }
}

INLINE void finish_tile(const int h, V (*sum)[NV], const struct out *o)
{
    const struct gemm_finish *f = o->finish;

    if (f->bias)
        add(h, sum, f->bias, 0);
    if (o->table)
        add(h, sum, o->table, f->table_stride);
    if (f->accumulate)
        add(h, sum, o->y, o->stride);
    if (f->f == ACTIVATION_RELU) {
        UNROLL
        for (int i = 0; i < h; i++) {
            UNROLL
            for (int j = 0; j < NV; j++)
                sum[i][j] = v_relu(sum[i][j]);
        }
    }
    put(h, sum, o->y, o->stride);
}
