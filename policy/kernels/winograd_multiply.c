#include "policy/kernels/gemm_bf16.h"
#include "policy/kernels/winograd_block.h"

// Products of one sum; these sums are then summed up. One sum of all 512 would have 2.4
// times the error (F(4x4): 20e-7 for 8e-7), direct convolution has 12e-7. Costs 1 % of the
// time at most.
#define DEPTH 64
#define TERMS 4 // that are summed up while they lie in the first-level cache

// A point of M for one panel: what is still to be added to it.
struct sum {
    const struct winograd_block *b;
    int panel;
    float *q;
    bool accumulate;
    int n;
    struct gemm_term term[TERMS];
    float room[TERMS][DEPTH * GEMM_MAX_NR] __attribute__((aligned(GEMM_ALIGN)));
};

static void sum_up(struct sum *s)
{
    const struct winograd *w = s->b->j->w;
    int nr = w->kernel->nr, columns = clamp(w->out - s->panel * nr, 1, nr);

    gemm_terms(w->kernel, s->term, s->n, s->b->j->l.v_row, s->b->tiles, columns, s->q,
               s->b->q_row, s->accumulate);
    s->accumulate = true;
    s->n = 0;
}

// Adds a term: rows of V by one part of U as floats, where it is, or out of 16 bits into the
// sum's room. What comes `next` values behind it is asked for: out of memory, 16 bits were 64 %
// slower (AVX2 40 %) without.
static void add_part(struct sum *s, const float *v, int depth, size_t at, size_t next)
{
    const struct winograd *w = s->b->j->w;

    if (s->n == TERMS)
        sum_up(s);
    struct gemm_term *t = &s->term[s->n];
    float *room = s->room[s->n++];
    if (!w->bf16) {
        *t = (struct gemm_term){v, depth, w->u + at, w->u + at + next};
        return;
    }
    *t = (struct gemm_term){v, depth, room, (const void *)(w->bf16 + at + next)};
    gemm_bf16_expand_of(w->kernel->isa)(w->bf16 + at, product(depth, w->kernel->nr),
                                        room);
}

// Adds point v of V by matrix u.
static void add_pair(struct sum *s, int v_point, int u_point)
{
    const struct winograd_job *j = s->b->j;
    const float *v = s->b->v + (size_t)v_point * s->b->v_point;
    size_t nr = (size_t)j->w->kernel->nr;
    size_t u = (size_t)u_point * j->matrix_floats + product(s->panel, j->w->in) * nr;
    size_t next = (size_t)clamp(j->w->in, 1, TERMS * DEPTH) * nr;

    for (int k = 0; k < j->w->in; k += DEPTH)
        add_part(s, v + k, clamp(j->w->in - k, 1, DEPTH), u + (size_t)k * nr, next);
}

// Stride 2. Along a line, point p of M is the sum of the outer values' point p, which has
// matrix 1 + p, and, but for infinity, of that of the values between, which have matrix 0.
static void add_phases(struct sum *s, int point)
{
    int m = s->b->j->w->m, n = winograd_columns(m), y = point / (n + 1),
        x = point % (n + 1);

    for (int inner_y = 0; inner_y <= (y < m ? 1 : 0); inner_y++)
        for (int inner_x = 0; inner_x <= (x < n ? 1 : 0); inner_x++) {
            int v_y = inner_y ? m + 1 + y : y, v_x = inner_x ? n + 1 + x : x;
            int u_y = inner_y ? 0 : 1 + y, u_x = inner_x ? 0 : 1 + x;
            add_pair(s, v_y * (2 * n + 1) + v_x, u_y * (n + 2) + u_x);
        }
}

void winograd_multiply(const struct winograd_block *b, int point, int panel)
{
    struct sum s;

    s.b = b;
    s.panel = panel;
    s.q = b->q + (size_t)point * b->q_point +
          (size_t)((panel - b->panel0) * b->j->w->kernel->nr);
    s.accumulate = false;
    s.n = 0;
    if (winograd_stride(b->j->w->m) == 2)
        add_phases(&s, point);
    else
        add_pair(&s, point, point);
    sum_up(&s);
}
