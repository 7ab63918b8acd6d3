// golden_write: records what a policy answers to an observation made up from a seed.
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/golden_priv.h"
#include "policy/policy_priv.h"
#include "policy/refuse.h"

// ---- the observation ------------------------------------------------------------------

static uint64_t next(uint64_t *seed) // splitmix64
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Values from the middle of what was trained on: -1 to 1 once normalised.
static void make_values(const struct norm *m, uint64_t *seed, float *out)
{
    for (int i = 0; i < m->n; i++)
        out[i] = (float)(next(seed) >> 40) / 8388608.0f - 1.0f;
    norm_invert(m, out, out, 1);
}

// 8 by 8 fields of one colour each: every convolution sees edges, and it packs to nothing.
static void make_picture(const struct policy_camera *c, uint64_t *seed, uint8_t *rgb)
{
    uint8_t colour[8][8][3];
    for (int i = 0; i < 8 * 8 * 3; i++)
        colour[i / 24][i / 3 % 8][i % 3] = (uint8_t)(32 + 64 * (next(seed) >> 62));
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++, rgb += 3)
            memcpy(rgb, colour[8 * y / c->height][8 * x / c->width], 3);
}

void golden_make_up(struct golden *g, const struct policy *p, uint64_t seed)
{
    const struct lerobot_checkpoint *c = p->checkpoint;
    if (p->info.state_dim)
        make_values(&c->state, &seed, g->state);
    if (p->info.env_dim)
        make_values(&c->env, &seed, g->env);
    for (int i = 0; i < p->info.n_cameras; i++)
        make_picture(&p->info.camera[i], &seed, g->rgb[i]);
}

static int make(struct golden *g, struct policy *p, uint64_t seed,
                struct policy_error *err)
{
    golden_make_up(g, p, seed);
    int rc = golden_compute(g, p, err);
    memcpy(g->actions, g->answer, golden_values(&p->info) * sizeof *g->actions);
    return rc;
}

// ---- the file -------------------------------------------------------------------------

// {"name": {"dtype": "F32", "shape": [..], "data_offsets": [a, b]}, ...}, or NULL.
static char *make_header(const struct golden_part *part, int n)
{
    json_t *all = json_object();
    json_int_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct golden_part *t = &part[i];
        json_int_t end = at + (json_int_t)t->bytes;
        json_t *shape = json_array();
        for (int k = 0; k < t->rank; k++)
            json_array_append_new(shape, json_integer(t->shape[k]));
        json_object_set_new(all, t->name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                                      st_dtype_name(t->dtype), "shape", shape,
                                      "data_offsets", at, end));
        at = end;
    }
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static bool put(FILE *f, const struct golden_part *part, int n, const char *header)
{
    size_t used = strlen(header);
    uint64_t length = (used + 7) / 8 * 8; // little endian, as this machine
    bool ok = fwrite(&length, sizeof length, 1, f) == 1 && fputs(header, f) >= 0;
    for (; ok && used < length; used++)
        ok = fputc(' ', f) == ' ';
    for (int i = 0; ok && i < n; i++)
        ok = fwrite(part[i].data, 1, part[i].bytes, f) == part[i].bytes;
    return ok && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

// 0 or -errno. f is closed.
static int fill(FILE *f, const struct golden_part *part, int n)
{
    char *header = make_header(part, n);
    int rc = !header ? -ENOMEM : put(f, part, n, header) ? 0 : errno ? -errno : -EIO;
    free(header);
    if (fchmod(fileno(f), 0644) < 0 && rc == 0) // mkstemp's 0600 keeps the daemon out
        rc = -errno;
    if (fclose(f) && rc == 0)
        rc = -errno;
    return rc;
}

static int write_file(const char *dir, const struct golden_part *part, int n,
                      bool replace)
{
    char temporary[640], path[640];
    int fd, rc;
    snprintf(temporary, sizeof temporary, "%.500s/.%s.XXXXXX", dir, GOLDEN_FILE);
    snprintf(path, sizeof path, "%.500s/%s", dir, GOLDEN_FILE);
    fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    errno = 0;
    FILE *f = fdopen(fd, "wb");
    rc = f ? fill(f, part, n) : -ENOMEM;
    if (!f)
        close(fd);
    if (rc == 0 && renameat2(AT_FDCWD, temporary, AT_FDCWD, path,
                             replace ? 0 : RENAME_NOREPLACE) < 0)
        rc = -errno;
    if (rc)
        unlink(temporary);
    return rc;
}

int golden_write(struct policy *p, const char *dir, uint64_t seed, bool replace,
                 struct policy_error *err)
{
    struct golden_part part[GOLDEN_MAX_PARTS];
    struct golden g;
    int rc = golden_allocate(&g, &p->info)
                 ? refuse(err, ENOMEM, "no memory for %s", GOLDEN_FILE)
                 : make(&g, p, seed, err);
    if (rc == 0) {
        int n = golden_parts(&g, &p->info, part);
        rc = write_file(dir, part, n, replace);
        if (rc == -EEXIST)
            refuse(err, EEXIST, "%.200s has a %s already: --force writes another", dir,
                   GOLDEN_FILE);
        else if (rc)
            refuse(err, -rc, "%s can not be written into %.200s: %s", GOLDEN_FILE, dir,
                   strerror(-rc));
    }
    golden_free(&g);
    return rc;
}
