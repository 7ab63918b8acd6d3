// lerobot_names: see the header.
#include "policy/lerobot_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/refuse.h"

// Cuts every "_orig_mod" out of a dotted name, with the dot that belongs to it.
static void strip_compiled(char *name)
{
    static const char word[] = "_orig_mod";
    const size_t n = sizeof word - 1;
    char *p = name;

    while ((p = strstr(p, word))) {
        bool starts = p == name || p[-1] == '.';

        if (starts && p[n] == '.')
            memmove(p, p + n + 1, strlen(p + n + 1) + 1);
        else if (starts && p[n] == 0)
            *(p > name ? p - 1 : p) = 0;
        else
            p += n; // a part of a longer word
    }
}

// Before June 2024 the embedding of the two non-image tokens, in the same order.
static const char *renamed(const char *name)
{
    if (strcmp(name, "model.encoder_robot_and_latent_pos_embed.weight") == 0)
        return "model.encoder_1d_feature_pos_embed.weight";
    return name;
}

static int add(struct lr_names *t, const char *name, const struct st_tensor *tensor,
               bool alias)
{
    struct lr_name *e = &t->at[t->n];
    char *copy = strdup(name);

    if (!copy)
        return -ENOMEM;
    strip_compiled(copy);
    e->name = strdup(renamed(copy));
    e->tensor = tensor;
    e->used = alias;
    free(copy);
    if (!e->name)
        return -ENOMEM;
    t->n++;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct lr_name *x = a, *y = b;

    return strcmp(x->name, y->name);
}

// One entry per name: two tensors of one name are refused, an alias that only repeats its
// tensor's name is dropped.
static int make_unique(struct lr_names *t, struct policy_error *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++) {
        struct lr_name *last = kept ? &t->at[kept - 1] : NULL;

        if (!last || strcmp(last->name, t->at[i].name) != 0) {
            t->at[kept++] = t->at[i];
            continue;
        }
        if (last->tensor != t->at[i].tensor)
            return refuse(
                err, EINVAL,
                "two tensors are called '%.150s' once ._orig_mod is removed: the file "
                "mixes two checkpoints",
                last->name);
        last->used = last->used && t->at[i].used;
        free(t->at[i].name);
        t->at[i].name = NULL;
    }
    t->n = kept;
    return 0;
}

int lr_names_build(struct lr_names *out, const struct st_file *f,
                   struct policy_error *err)
{
    int r = 0;

    *out = (struct lr_names){
        0, calloc(st_count(f) + st_alias_count(f) + 1, sizeof *out->at)};
    if (!out->at)
        return refuse(err, ENOMEM, "no memory for the table of tensor names");
    for (size_t i = 0; r == 0 && i < st_count(f); i++)
        r = add(out, st_at(f, i)->name, st_at(f, i), false);
    for (size_t i = 0; r == 0 && i < st_alias_count(f); i++) {
        const char *removed;
        const struct st_tensor *kept = st_alias_at(f, i, &removed);

        r = add(out, removed, kept, true);
    }
    if (r < 0)
        return refuse(err, ENOMEM, "no memory for the table of tensor names");
    qsort(out->at, out->n, sizeof *out->at, by_name);
    return make_unique(out, err);
}

void lr_names_close(struct lr_names *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->at[i].name);
    free(t->at);
    *t = (struct lr_names){0};
}

struct lr_name *lr_names_find(const struct lr_names *t, const char *name)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(t->at[mid].name, name);

        if (order == 0)
            return &t->at[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
