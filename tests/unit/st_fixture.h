// st_fixture: writes .safetensors files and checkpoint directories for tests. Header only; each
// function is static so that a test takes what it needs.
//
//   struct stf f;                                  // or: raw bytes by stf_write_raw
//   stf_begin(&f);
//   stf_add(&f, "a.weight", STF_F32, 2, (int[]){2, 3}, values);   // NULL: grown from the name
//   stf_meta(&f, "format", "pt");
//   stf_save(&f, path);                            // frees what stf_add took
#ifndef ACTD_ST_FIXTURE_H
#define ACTD_ST_FIXTURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STF_MAX 4200
#define STF_FN  __attribute__((unused)) static

enum stf_store { STF_F32, STF_F16, STF_BF16 };

struct stf {
    size_t n;
    struct {
        char name[320];
        enum stf_store store;
        int rank, shape[4];
        size_t count;
        float *value; // (count)
    } * t;            // (STF_MAX)
    char meta[2048];  // "key":"value" pairs
};

STF_FN void stf_die(const char *what)
{
    perror(what);
    exit(99); // a fixture that cannot be written is no test result
}

STF_FN void stf_begin(struct stf *f)
{
    memset(f, 0, sizeof *f);
    f->t = calloc(STF_MAX, sizeof *f->t);
    if (!f->t)
        stf_die("stf_begin");
}

// A small number in [-0.5, 0.5) that depends on name and index only.
STF_FN float stf_value(const char *name, size_t i)
{
    uint32_t h = 2166136261u;

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    h = (h + (uint32_t)i * 2654435761u) * 1664525u + 1013904223u;
    return (float)(h >> 16) / 65536.0f - 0.5f;
}

STF_FN void stf_add(struct stf *f, const char *name, enum stf_store store, int rank,
                    const int *shape, const float *value)
{
    size_t count = 1;

    for (int i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    snprintf(f->t[f->n].name, sizeof f->t[f->n].name, "%s", name);
    f->t[f->n].store = store;
    f->t[f->n].rank = rank;
    for (int i = 0; i < rank; i++)
        f->t[f->n].shape[i] = shape[i];
    f->t[f->n].count = count;
    f->t[f->n].value = malloc(count * sizeof(float) + 1);
    if (!f->t[f->n].value || f->n + 1 >= STF_MAX)
        stf_die("stf_add");
    for (size_t i = 0; i < count; i++)
        f->t[f->n].value[i] = value ? value[i] : stf_value(name, i);
    f->n++;
}

// The index of a tensor, -1 if there is none. To change a fixture before it is saved.
STF_FN int stf_index(const struct stf *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->t[i].name, name) == 0)
            return (int)i;
    return -1;
}

STF_FN void stf_drop(struct stf *f, const char *name)
{
    int i = stf_index(f, name);

    if (i < 0)
        stf_die(name);
    free(f->t[i].value);
    f->t[i] = f->t[--f->n];
    f->t[f->n].value = NULL;
}

STF_FN void stf_meta(struct stf *f, const char *key, const char *value)
{
    size_t at = strlen(f->meta);

    snprintf(f->meta + at, sizeof f->meta - at, "%s\"%s\":\"%s\"", at ? "," : "", key,
             value);
}

// float to IEEE half, rounding toward zero: exact for the small fractions tests use.
STF_FN uint16_t stf_half(float v)
{
    uint32_t b;
    int e;

    memcpy(&b, &v, sizeof b);
    e = (int)(b >> 23 & 255) - 127 + 15;
    if (e <= 0)
        return (uint16_t)(b >> 16 & 0x8000);
    if (e >= 31)
        return (uint16_t)((b >> 16 & 0x8000) | 31u << 10); // infinity
    return (uint16_t)((b >> 16 & 0x8000) | (uint32_t)e << 10 | (b >> 13 & 1023));
}

// 8 bytes of length, n bytes of header, data.
STF_FN void stf_write_raw(const char *path, const char *header, size_t n,
                          const void *data, size_t data_n)
{
    FILE *o = fopen(path, "wb");

    if (!o)
        stf_die(path);
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)n >> 8 * i & 255), o);
    fwrite(header, 1, n, o);
    fwrite(data, 1, data_n, o);
    if (fclose(o) != 0)
        stf_die(path);
}

STF_FN size_t stf_header(const struct stf *f, char *h, size_t size)
{
    size_t at = 0, offset = 0;

    at += (size_t)snprintf(h, size, "{");
    if (f->meta[0])
        at += (size_t)snprintf(h + at, size - at, "\"__metadata__\":{%s},", f->meta);
    for (size_t i = 0; i < f->n; i++) {
        size_t bytes = f->t[i].count * (f->t[i].store == STF_F32 ? 4 : 2);

        at += (size_t)snprintf(h + at, size - at, "\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                               f->t[i].name,
                               f->t[i].store == STF_F32   ? "F32"
                               : f->t[i].store == STF_F16 ? "F16"
                                                          : "BF16");
        for (int k = 0; k < f->t[i].rank; k++)
            at += (size_t)snprintf(h + at, size - at, "%s%d", k ? "," : "",
                                   f->t[i].shape[k]);
        at += (size_t)snprintf(h + at, size - at, "],\"data_offsets\":[%zu,%zu]}%s",
                               offset, offset + bytes, i + 1 < f->n ? "," : "");
        offset += bytes;
    }
    return at + (size_t)snprintf(h + at, size - at, "}");
}

STF_FN void stf_save(struct stf *f, const char *path)
{
    size_t size = 4096 + f->n * 512, bytes = 0, n;
    char *h = malloc(size), *data, *p;

    for (size_t i = 0; i < f->n; i++)
        bytes += f->t[i].count * 4;
    p = data = malloc(bytes + 1);
    if (!h || !data)
        stf_die("stf_save");
    n = stf_header(f, h, size);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->t[i].count; k++) {
            float v = f->t[i].value[k];
            uint32_t bits;
            uint16_t half = stf_half(v);

            memcpy(&bits, &v, sizeof bits);
            if (f->t[i].store == STF_BF16)
                half = (uint16_t)(bits >> 16);
            memcpy(p, f->t[i].store == STF_F32 ? (void *)&bits : (void *)&half,
                   f->t[i].store == STF_F32 ? 4 : 2);
            p += f->t[i].store == STF_F32 ? 4 : 2;
        }
    stf_write_raw(path, h, n, data, (size_t)(p - data));
    for (size_t i = 0; i < f->n; i++)
        free(f->t[i].value);
    free(f->t);
    free(h);
    free(data);
    memset(f, 0, sizeof *f);
}

STF_FN void stf_write_text(const char *path, const char *text)
{
    FILE *o = fopen(path, "wb");

    if (!o || fwrite(text, 1, strlen(text), o) != strlen(text) || fclose(o) != 0)
        stf_die(path);
}

// A fresh directory under $TMPDIR, else in memory (thousands of small files are written), else
// under /tmp; the name goes into out (128 bytes).
STF_FN void stf_tempdir(char *out)
{
    const char *base = getenv("TMPDIR");

    if (!base || !*base)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(out, 128, "%.80s/actd-test-XXXXXX", base);
    if (!mkdtemp(out))
        stf_die(out);
}

#endif
