// What act_prepare computes, from one policy to another of the same checkpoint.
#include <string.h>

#include "policy/models/act.h"

struct visit {
    float *kept;  // of the next table
    bool restore; // else save; with neither, kept is NULL: count
    size_t n;
};

static void one(struct visit *v, float *table, size_t n)
{
    v->n += n;
    if (!v->kept)
        return;
    memcpy(v->restore ? table : v->kept, v->restore ? v->kept : table, n * sizeof *table);
    v->kept += n;
}

static size_t all(const struct act *m, float *kept, bool restore)
{
    const struct act_weights *w = &m->w;
    struct visit v = {.kept = kept, .restore = restore};
    size_t d = (size_t)m->c.dim, tokens = (size_t)m->c.tokens, chunk = (size_t)m->c.chunk;
    size_t row = (size_t)act_stride(m->c.dim), row2 = (size_t)act_stride(2 * m->c.dim);

    for (int i = 0; i < m->c.n_encoder_layers; i++)
        one(&v, w->encoder[i].self_pos, tokens * row2);
    for (int i = 0; i < m->c.n_decoder_layers; i++) {
        one(&v, w->decoder[i].self_pos, chunk * row2);
        one(&v, w->decoder[i].cross_q_pos, chunk * row);
        one(&v, w->decoder[i].cross_k_pos, tokens * row);
    }
    one(&v, w->start_x, chunk * d);
    one(&v, w->start_query, chunk * d);
    return v.n;
}

size_t act_prepared_floats(const struct act *m)
{
    return all(m, NULL, false);
}

void act_save_prepared(const struct act *m, float *to)
{
    all(m, to, false);
}

void act_restore_prepared(struct act *m, float *from)
{
    all(m, from, true);
}
