// golden_write: writes the checkpoint directory that a golden case describes: the files
// LeRobot wrote, copied, and a model.safetensors whose tensors are grown from the case's seed.
// Header only, since every unit test is one C file.
#ifndef ACTD_GOLDEN_WRITE_H
#define ACTD_GOLDEN_WRITE_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/golden_gen.h"

// One row of the case's tensor list: [name, shape, scale, offset] or [name, shape, values].
struct golden_tensor {
    const char *name;
    json_t *shape;
    json_t *values; // NULL when grown
    float scale, offset;
    size_t n;
};

static inline struct golden_tensor golden_tensor_at(json_t *row)
{
    struct golden_tensor t = {.name = json_string_value(json_array_get(row, 0)),
                              .shape = json_array_get(row, 1),
                              .n = 1};
    json_t *third = json_array_get(row, 2), *d;
    size_t i;

    if (json_is_array(third))
        t.values = third;
    else {
        t.scale = (float)json_number_value(third);
        t.offset = (float)json_number_value(json_array_get(row, 3));
    }
    json_array_foreach(t.shape, i, d) t.n *= (size_t)json_integer_value(d);
    return t;
}

// The safetensors header: name, dtype, shape and place of every tensor, and the metadata.
static inline json_t *golden_header(json_t *json)
{
    json_t *list = json_object_get(json, "tensors"), *row, *header = json_object();
    json_t *meta = json_pack("{s:s}", "format", "pt");
    json_t *rename = json_object_get(json, "rename");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    size_t i, at = 0, width = dtype ? 2 : 4;

    json_object_update(meta, json_object_get(json, "metadata"));
    json_object_set_new(header, "__metadata__", meta);
    json_array_foreach(list, i, row)
    {
        struct golden_tensor t = golden_tensor_at(row);
        const char *from = json_string_value(json_array_get(rename, 0));
        const char *to = json_string_value(json_array_get(rename, 1));
        size_t skip = from && !strncmp(t.name, from, strlen(from)) ? strlen(from) : 0;
        char name[256];

        snprintf(name, sizeof(name), "%s%s", skip ? to : "", t.name + skip);
        json_t *entry = json_pack("{s:s, s:O, s:[I,I]}", "dtype", dtype ? dtype : "F32",
                                  "shape", t.shape, "data_offsets", (json_int_t)at,
                                  (json_int_t)(at + t.n * width));
        json_object_set_new(header, name, entry);
        at += t.n * width;
    }
    return header;
}

static inline int golden_write_tensor(FILE *f, uint64_t seed, struct golden_tensor t,
                                      const char *dtype)
{
    uint64_t key = golden_key(seed, t.name);
    int rc = 0;

    for (size_t i = 0; i < t.n; i += 1024) {
        size_t n = t.n - i < 1024 ? t.n - i : 1024;
        float v[1024];
        uint16_t half[1024];

        for (size_t k = 0; k < n; k++) {
            v[k] = t.values ? (float)json_number_value(json_array_get(t.values, i + k))
                            : golden_float(key, i + k, t.scale, t.offset);
            half[k] = dtype && dtype[0] == 'B' ? golden_bf16(v[k]) : golden_f16(v[k]);
        }
        if (dtype)
            rc |= fwrite(half, 2, n, f) != n;
        else
            rc |= fwrite(v, 4, n, f) != n;
    }
    return rc ? -EIO : 0;
}

static inline int golden_write_weights(json_t *json, const char *path)
{
    json_t *header = golden_header(json), *row;
    char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(json, "seed"));
    FILE *f = fopen(path, "wb");
    uint64_t length = strlen(text);
    size_t i;
    int rc = f ? 0 : -errno;

    if (!rc) {
        rc = fwrite(&length, 8, 1, f) != 1 || fwrite(text, length, 1, f) != 1 ? -EIO : 0;
        json_array_foreach(json_object_get(json, "tensors"), i, row) rc =
            rc ? rc : golden_write_tensor(f, seed, golden_tensor_at(row), dtype);
        if (fclose(f))
            rc = -EIO;
    }
    free(text);
    json_decref(header);
    return rc;
}

static inline int golden_copy_file(const char *from, const char *to)
{
    FILE *a = fopen(from, "rb"), *b = a ? fopen(to, "wb") : NULL;
    char buf[4096];
    size_t n;
    int rc = b ? 0 : -errno;

    while (!rc && (n = fread(buf, 1, sizeof(buf), a)) > 0)
        rc = fwrite(buf, 1, n, b) == n ? 0 : -EIO;
    if (b && fclose(b))
        rc = -EIO;
    if (a)
        fclose(a);
    return rc;
}

// Copies config.json and the processor files of `from` to `to`.
static inline int golden_copy_config(const char *from, const char *to)
{
    DIR *d = opendir(from);
    const struct dirent *e;
    int rc = d ? 0 : -errno;

    while (!rc && (e = readdir(d))) {
        char a[1024], b[1024];

        if (strcmp(e->d_name, "config.json") && strncmp(e->d_name, "policy_", 7))
            continue;
        snprintf(a, sizeof(a), "%s/%s", from, e->d_name);
        snprintf(b, sizeof(b), "%s/%s", to, e->d_name);
        rc = golden_copy_file(a, b);
    }
    if (d)
        closedir(d);
    return rc;
}

static inline void golden_remove_checkpoint(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

// Makes a temporary directory for the case in `from` and writes its name to dir[size].
// 0, or -errno with nothing left behind.
static inline int golden_write_checkpoint(json_t *json, const char *from, char *dir,
                                          size_t size)
{
    const char *tmp = getenv("TMPDIR");
    char path[1024];

    snprintf(dir, size, "%s/actd-golden-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return -errno;
    snprintf(path, sizeof(path), "%s/model.safetensors", dir);
    int rc = golden_copy_config(from, dir);
    if (!rc)
        rc = golden_write_weights(json, path);
    if (rc)
        golden_remove_checkpoint(dir);
    return rc;
}

#endif
