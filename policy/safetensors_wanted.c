// safetensors_wanted: a whole file in one pass. Reading the weights tensor by tensor, then
// looking through them, then hashing the file went over 137 MB of memory five times; block by
// block each byte comes from memory once and is still in the second-level cache for the rest.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "policy/digest.h"
#include "policy/finite.h"
#include "policy/refuse.h"
#include "policy/safetensors_priv.h"

#define BLOCK \
    ((size_t)128 << 10) // bytes: a quarter or less of a core's second-level cache

struct pass {
    struct st_file *f;
    struct digest *digest;
    const _Atomic bool *cancel;
    char *block;   // (BLOCK) bytes that are not float32 yet, or that nobody wants
    float *values; // (BLOCK / 2) of them, only looked at
    struct policy_error *err;
};

// Tensors lie in one array in the order of the file.
static int by_place(const void *a, const void *b)
{
    const struct st_want *x = a, *y = b;

    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int check_want(const struct pass *p, const struct st_want *w)
{
    const struct st_tensor *t = w->tensor;

    if (w->n != st_elements(t))
        return refuse(p->err, EINVAL,
                      "tensor '%.100s' of %s has %" PRIu64 " values, not %zu", t->name,
                      p->f->name, st_elements(t), w->n);
    if (t->dtype != ST_F32 && !st_convert(t->dtype, NULL, NULL, 0))
        return refuse(
            p->err, EINVAL,
            "tensor '%.100s' of %s is stored as %s: save it as F32, F16 or BF16", t->name,
            p->f->name, st_dtype_name(t->dtype));
    return 0;
}

// Weights that inference does without are looked at all the same: a training that diverged shows
// in any of them. Not statistics: an unused one is stored as infinity.
static bool looked_at(const struct st_tensor *t)
{
    bool number = t->dtype == ST_F32 || t->dtype == ST_F16 || t->dtype == ST_BF16 ||
                  t->dtype == ST_F64;

    return number && strncmp(t->name, "normalize_", 10) != 0 &&
           strncmp(t->name, "unnormalize_", 12) != 0;
}

// n values of t from its value `from` on, as they are stored.
static int look(struct pass *p, const struct st_tensor *t, const char *stored,
                size_t from, size_t n)
{
    size_t good;

    if (!looked_at(t))
        return 0;
    if (t->dtype == ST_F32)
        memcpy(p->values, stored, n * sizeof *p->values);
    else
        st_convert(t->dtype, stored, p->values, n);
    good = finite_prefix(p->values, n);
    return good < n ? st_not_finite(p->f, t, from + good, p->err) : 0;
}

// `bytes` of tensor t from its byte `done` on. dst is the whole tensor's, NULL: nobody wants it.
static int read_block(struct pass *p, const struct st_tensor *t, uint64_t done,
                      size_t bytes, float *dst)
{
    size_t width = st_dtype_bytes(t->dtype), from = (size_t)(done / width), n, good;
    float *values = dst ? dst + from : NULL;
    char *to = values && t->dtype == ST_F32 ? (char *)values : p->block;
    int r = st_pread(p->f, to, bytes, p->f->data_offset + t->begin + done, p->err);

    if (r < 0)
        return r;
    digest_add(p->digest, to, bytes);
    n = bytes / width;
    if (!dst)
        return look(p, t, to, from, n);
    if (t->dtype != ST_F32)
        st_convert(t->dtype, to, values, n);
    good = finite_prefix(values, n);
    return good < n ? st_not_finite(p->f, t, from + good, p->err) : 0;
}

static int read_tensor(struct pass *p, const struct st_tensor *t, float *dst)
{
    int r = 0;

    for (uint64_t done = 0; r == 0 && done < t->nbytes; done += BLOCK) {
        uint64_t left = t->nbytes - done;

        if (p->cancel && atomic_load_explicit(p->cancel, memory_order_relaxed))
            return refuse(p->err, ECANCELED, "loading was cancelled in %s", p->f->name);
        r = read_block(p, t, done, left < BLOCK ? (size_t)left : BLOCK, dst);
    }
    return r;
}

// Where the values of a tensor go: where the first who wants them says. NULL with *r 0: nobody.
static float *place_of(struct pass *p, const struct st_want *w, int *r)
{
    if (w->n != st_elements(w->tensor))
        return NULL;
    if (w->dst || !w->begin)
        return w->dst;
    float *dst = w->begin(w->arg, w->n);
    if (!dst)
        *r = refuse(p->err, ENOMEM, "no memory for tensor '%.100s' of %s",
                    w->tensor->name, p->f->name);
    return dst;
}

static void hand_over(const struct st_want *w, float *values)
{
    if (w->dst && w->dst != values)
        memcpy(w->dst, values, w->n * sizeof *values);
    if (w->done)
        w->done(w->arg, values);
}

static int read_tensors(struct pass *p, const struct st_want *want, size_t n)
{
    size_t next = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < p->f->count; i++) {
        const struct st_tensor *t = &p->f->tensor[i];
        bool wanted = next < n && want[next].tensor == t;
        float *dst = wanted ? place_of(p, &want[next], &r) : NULL;

        if (r == 0)
            r = read_tensor(p, t, dst);
        for (; r == 0 && next < n && want[next].tensor == t; next++)
            if (dst)
                hand_over(&want[next], dst);
    }
    return r;
}

int st_read_wanted(struct st_file *f, struct st_want *want, size_t n,
                   const _Atomic bool *cancel, char sha256[POLICY_DIGEST_HEX],
                   struct policy_error *err)
{
    struct pass p = {.f = f, .cancel = cancel, .block = malloc(BLOCK), .err = err};
    int r;

    p.values = malloc(BLOCK / 2 * sizeof *p.values);
    if (!p.block || !p.values) {
        free(p.block);
        free(p.values);
        return refuse(err, ENOMEM, "no memory to read %s", f->name);
    }
    r = digest_start(&p.digest, err);
    // Advice only: a cold file is then read ahead of the hashing.
    (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (n)
        qsort(want, n, sizeof *want, by_place);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = check_want(&p, &want[i]);
    if (r == 0)
        r = st_unchanged(f, err);
    if (r == 0) {
        digest_add(p.digest, f->head, (size_t)f->data_offset);
        r = read_tensors(&p, want, n);
    }
    if (r == 0)
        r = st_unchanged(f, err);
    if (r == 0)
        r = digest_end(p.digest, sha256, err);
    digest_free(p.digest);
    free(p.block);
    free(p.values);
    return r;
}
