// The transforms of winograd_priv.h for vectors of WIDTH channels. Included, perhaps
// twice, by a file per instruction set, which defines before
//
//   WIDTH, NAME(x)          floats of a vector; a name of its own for x
//   VECTOR, SET(x)          the type; all lanes x
//   LOAD(p), STORE(p, v)    of any alignment
//   FMA(a, b, c), FNMA(..)  a * b + c, c - a * b
//   RELU(v)                 x < 0 ? 0 : x; a NaN stays
//
// All lanes do the same, so an output has the same bits wherever a vector begins.
//
// Both transforms are one-dimensional ones down all columns, then along all rows. All
// loops over a tile are unrolled, so that what lies between stays in registers as far as
// they go.

// n values to n.
typedef void NAME(line_fn)(const VECTOR *d, VECTOR *v);

// B^T d
WINOGRAD_INLINE void NAME(input_2)(const VECTOR *d, VECTOR *v)
{
    v[0] = d[2] - d[0];
    v[1] = d[2] + d[1];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
}

// A^T q: n values to m.
WINOGRAD_INLINE void NAME(output_2)(const VECTOR *q, VECTOR *y)
{
    y[0] = q[0] + (q[1] + q[2]);
    y[1] = (q[1] - q[2]) + q[3];
}

WINOGRAD_INLINE void NAME(input_4)(const VECTOR *d, VECTOR *v)
{
    const double a = WINOGRAD_4_A, b = WINOGRAD_4_B, aa = a * a, bb = b * b;
    VECTOR even_a = FNMA(SET(bb), d[2], d[4]), odd_a = FNMA(SET(bb), d[1], d[3]);
    VECTOR even_b = FNMA(SET(aa), d[2], d[4]), odd_b = FNMA(SET(aa), d[1], d[3]);

    v[0] = FMA(SET(aa * bb), d[0], FNMA(SET(aa + bb), d[2], d[4]));
    v[1] = FMA(SET(a), odd_a, even_a);
    v[2] = FNMA(SET(a), odd_a, even_a);
    v[3] = FMA(SET(b), odd_b, even_b);
    v[4] = FNMA(SET(b), odd_b, even_b);
    v[5] = FMA(SET(aa * bb), d[1], FNMA(SET(aa + bb), d[3], d[5]));
}

WINOGRAD_INLINE void NAME(output_4)(const VECTOR *q, VECTOR *y)
{
    const double a = WINOGRAD_4_A, b = WINOGRAD_4_B, aa = a * a, bb = b * b;
    VECTOR even_a = q[1] + q[2], odd_a = q[1] - q[2];
    VECTOR even_b = q[3] + q[4], odd_b = q[3] - q[4];

    y[0] = q[0] + (even_a + even_b);
    y[1] = FMA(SET(a), odd_a, SET(b) * odd_b);
    y[2] = FMA(SET(aa), even_a, SET(bb) * even_b);
    y[3] = FMA(SET(a * aa), odd_a, FMA(SET(b * bb), odd_b, q[5]));
}

// The points +p and -p of F(6x6), the squares of the other two being qq and rr.
WINOGRAD_INLINE void NAME(pair_6)(double p, double qq, double rr, const VECTOR *d,
                                  VECTOR *v)
{
    VECTOR even = FMA(SET(qq * rr), d[2], FNMA(SET(qq + rr), d[4], d[6]));
    VECTOR odd = FMA(SET(qq * rr), d[1], FNMA(SET(qq + rr), d[3], d[5]));

    v[0] = FMA(SET(p), odd, even);
    v[1] = FNMA(SET(p), odd, even);
}

WINOGRAD_INLINE void NAME(input_6)(const VECTOR *d, VECTOR *v)
{
    const double a = WINOGRAD_6_A, b = WINOGRAD_6_B, c = WINOGRAD_6_C;
    const double aa = a * a, bb = b * b, cc = c * c;
    const double e1 = aa + bb + cc, e2 = aa * bb + aa * cc + bb * cc, e3 = aa * bb * cc;

    v[0] = FNMA(SET(e3), d[0], FMA(SET(e2), d[2], FNMA(SET(e1), d[4], d[6])));
    NAME(pair_6)(a, bb, cc, d, v + 1);
    NAME(pair_6)(b, aa, cc, d, v + 3);
    NAME(pair_6)(c, aa, bb, d, v + 5);
    v[7] = FNMA(SET(e3), d[1], FMA(SET(e2), d[3], FNMA(SET(e1), d[5], d[7])));
}

// p x + q y + r z
WINOGRAD_INLINE VECTOR NAME(three)(double p, VECTOR x, double q, VECTOR y, double r,
                                   VECTOR z)
{
    return FMA(SET(p), x, FMA(SET(q), y, SET(r) * z));
}

WINOGRAD_INLINE void NAME(output_6)(const VECTOR *q, VECTOR *y)
{
    const double a = WINOGRAD_6_A, b = WINOGRAD_6_B, c = WINOGRAD_6_C;
    const double aa = a * a, bb = b * b, cc = c * c;
    VECTOR ea = q[1] + q[2], oa = q[1] - q[2], eb = q[3] + q[4], ob = q[3] - q[4];
    VECTOR ec = q[5] + q[6], oc = q[5] - q[6];

    y[0] = (q[0] + ea) + (eb + ec);
    y[1] = NAME(three)(a, oa, b, ob, c, oc);
    y[2] = NAME(three)(aa, ea, bb, eb, cc, ec);
    y[3] = NAME(three)(a * aa, oa, b * bb, ob, c * cc, oc);
    y[4] = NAME(three)(aa * aa, ea, bb * bb, eb, cc * cc, ec);
    y[5] = NAME(three)(a * aa * aa, oa, b * bb * bb, ob, c * cc * cc, oc) + q[7];
}

// Stride 2: the outer values to their points, infinity the last, then those between to
// theirs. Here the finite points of three values that are two apart.
WINOGRAD_INLINE void NAME(finite_3)(const VECTOR *d, VECTOR *v)
{
    v[0] = d[4] - d[0];
    v[1] = d[4] + d[2];
    v[2] = d[4] - d[2];
}

WINOGRAD_INLINE void NAME(input_3)(const VECTOR *d, VECTOR *v)
{
    NAME(finite_3)(d, v);
    v[3] = d[6] - d[2];
    NAME(finite_3)(d + 1, v + 4);
}

// Along a tile's two columns.
WINOGRAD_INLINE void NAME(input_3_columns)(const VECTOR *d, VECTOR *v)
{
    v[0] = d[0] - d[2];
    v[1] = d[2];
    v[2] = d[4] - d[2];
    v[3] = d[1] - d[3];
    v[4] = d[3];
}

WINOGRAD_INLINE void NAME(output_3_columns)(const VECTOR *q, VECTOR *y)
{
    y[0] = q[0] + q[1];
    y[1] = q[1] + q[2];
}

WINOGRAD_INLINE void NAME(output_3)(const VECTOR *q, VECTOR *y)
{
    VECTOR even = q[1] + q[2], odd = q[1] - q[2];

    y[0] = FMA(SET(0.5), even, -q[0]);
    y[1] = SET(0.5) * odd;
    y[2] = FMA(SET(0.5), even, q[3]);
}

// One vector of a tile, (n, columns) values to as many. f, down the columns, g, along the
// rows, and their sizes are constants where this is called.
WINOGRAD_INLINE void NAME(input_tile)(NAME(line_fn) * f, int n, NAME(line_fn) * g,
                                      int columns, const struct winograd_input *i, int c)
{
    const int overlap = n == columns ? 2 : 1; // columns that the tile before has read
    VECTOR t[WINOGRAD_MAX_N][WINOGRAD_MAX_N], d[WINOGRAD_MAX_N], v[WINOGRAD_MAX_N];

    WINOGRAD_UNROLL
    for (int x = 0; x < columns; x++) {
        const float *from = i->d + c + (size_t)x * i->d_pixel;
        const float *next = i->next + c + (size_t)x * i->d_pixel;
        WINOGRAD_UNROLL
        for (int y = 0; y < n; y++) {
            d[y] = LOAD(from + (size_t)y * i->d_row);
            if (x >= overlap)
                __builtin_prefetch(next + (size_t)y * i->d_row);
        }
        f(d, v);
        WINOGRAD_UNROLL
        for (int y = 0; y < n; y++)
            t[y][x] = v[y];
    }
    WINOGRAD_UNROLL
    for (int y = 0; y < n; y++) {
        float *to = i->v + c + (size_t)(y * columns) * i->v_point;
        g(t[y], v);
        WINOGRAD_UNROLL
        for (int x = 0; x < columns; x++)
            STORE(to + (size_t)x * i->v_point, v[x]);
    }
}

// A line of output pixels to where it belongs: bias, shortcut, ReLU.
WINOGRAD_INLINE void NAME(finish)(const VECTOR *line, int m,
                                  const struct winograd_output *o, float *y,
                                  const float *next, VECTOR bias)
{
    WINOGRAD_UNROLL
    for (int x = 0; x < m; x++, y += o->y_pixel, next += o->y_pixel) {
        VECTOR v = line[x] + bias;
        if (x >= o->cols)
            return;
        if (o->accumulate)
            v = v + LOAD(y);
        if (o->relu)
            v = RELU(v);
        STORE(y, v);
        __builtin_prefetch(next, 1);
    }
}

// (n, columns) values to (m, pixels).
WINOGRAD_INLINE void NAME(output_tile)(NAME(line_fn) * f, int n, int m, NAME(line_fn) * g,
                                       int columns, int pixels,
                                       const struct winograd_output *o, int c)
{
    VECTOR t[WINOGRAD_MAX_N][WINOGRAD_MAX_N], q[WINOGRAD_MAX_N], y[WINOGRAD_MAX_N];
    VECTOR bias = LOAD(o->bias + c);

    WINOGRAD_UNROLL
    for (int column = 0; column < columns; column++) {
        const float *from = o->q + c + (size_t)column * o->q_point;
        WINOGRAD_UNROLL
        for (int row = 0; row < n; row++)
            q[row] = LOAD(from + (size_t)(row * columns) * o->q_point);
        f(q, y);
        WINOGRAD_UNROLL
        for (int row = 0; row < m; row++)
            t[row][column] = y[row];
    }
    WINOGRAD_UNROLL
    for (int row = 0; row < m; row++) {
        if (row >= o->rows)
            return;
        g(t[row], y);
        size_t at = (size_t)row * o->y_row + (size_t)c;
        NAME(finish)(y, pixels, o, o->y + at, o->next + at, bias);
    }
}

// All whole vectors of a tile's channels; how many channels that were.
static int NAME(inputs)(int m, const struct winograd_input *i)
{
    int c = 0;

    for (; m == 2 && c + WIDTH <= i->channels; c += WIDTH)
        NAME(input_tile)(NAME(input_2), 4, NAME(input_2), 4, i, c);
    for (; m == 3 && c + WIDTH <= i->channels; c += WIDTH)
        NAME(input_tile)(NAME(input_3), 7, NAME(input_3_columns), 5, i, c);
    for (; m == 4 && c + WIDTH <= i->channels; c += WIDTH)
        NAME(input_tile)(NAME(input_4), 6, NAME(input_4), 6, i, c);
    for (; m == 6 && c + WIDTH <= i->channels; c += WIDTH)
        NAME(input_tile)(NAME(input_6), 8, NAME(input_6), 8, i, c);
    return c;
}

static int NAME(outputs)(int m, const struct winograd_output *o)
{
    int c = 0;

    for (; m == 2 && c + WIDTH <= o->channels; c += WIDTH)
        NAME(output_tile)(NAME(output_2), 4, 2, NAME(output_2), 4, 2, o, c);
    for (; m == 3 && c + WIDTH <= o->channels; c += WIDTH)
        NAME(output_tile)(NAME(output_3), 4, 3, NAME(output_3_columns), 3, 2, o, c);
    for (; m == 4 && c + WIDTH <= o->channels; c += WIDTH)
        NAME(output_tile)(NAME(output_4), 6, 4, NAME(output_4), 6, 4, o, c);
    for (; m == 6 && c + WIDTH <= o->channels; c += WIDTH)
        NAME(output_tile)(NAME(output_6), 8, 6, NAME(output_6), 8, 6, o, c);
    return c;
}

#undef WIDTH
#undef NAME
#undef VECTOR
#undef SET
#undef LOAD
#undef STORE
#undef FMA
#undef FNMA
#undef RELU
