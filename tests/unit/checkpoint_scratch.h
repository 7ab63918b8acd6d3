// checkpoint_scratch: a checkpoint directory of a test's own, with files to be damaged.
#ifndef ACTD_TESTS_CHECKPOINT_SCRATCH_H
#define ACTD_TESTS_CHECKPOINT_SCRATCH_H

#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "policy/policy.h"
#include "tests/unit/act_fixture.h"

#define SCRATCH __attribute__((unused)) static

struct scratch {
    char dir[256];
    char path[512]; // of scratch_path, scratch_read, scratch_write
};

// A network without cameras: a few kilobytes.
SCRATCH struct act_fixture scratch_small(void)
{
    struct act_fixture f = act_fixture_tiny();
    f.dtype = ACT_FIXTURE_F32;
    f.n_cameras = 0;
    f.env_dim = 3;
    return f;
}

SCRATCH void scratch_make(struct scratch *s, const struct act_fixture *f)
{
    assert_int_equal(act_fixture_mkdir(s->dir), 0);
    assert_int_equal(act_fixture_write(s->dir, f), 0);
}

SCRATCH int scratch_unlink(const char *path, const struct stat *st, int flag,
                           struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

SCRATCH void scratch_remove(const struct scratch *s)
{
    assert_int_equal(nftw(s->dir, scratch_unlink, 8, FTW_DEPTH | FTW_PHYS), 0);
}

SCRATCH const char *scratch_path(struct scratch *s, const char *file)
{
    snprintf(s->path, sizeof s->path, "%s/%s", s->dir, file);
    return s->path;
}

// The whole file, with a 0 behind it; the caller's to free.
SCRATCH char *scratch_read(struct scratch *s, const char *file, size_t *size)
{
    FILE *f = fopen(scratch_path(s, file), "rb");
    struct stat st;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *bytes = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(bytes);
    *size = fread(bytes, 1, (size_t)st.st_size, f);
    assert_int_equal(*size, st.st_size);
    fclose(f);
    return bytes;
}

SCRATCH void scratch_write(struct scratch *s, const char *file, const void *bytes,
                           size_t size)
{
    FILE *f = fopen(scratch_path(s, file), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

// Replaces the first `from` in a file by `to`, of the same length or not.
SCRATCH void scratch_edit(struct scratch *s, const char *file, const char *from,
                          const char *to)
{
    size_t size, m = strlen(from), n = strlen(to);
    char *old = scratch_read(s, file, &size), *at = memmem(old, size, from, m);
    assert_non_null(at);
    char *all = malloc(size + n);
    assert_non_null(all);
    size_t head = (size_t)(at - old);
    memcpy(all, old, head);
    memcpy(all + head, to, n);
    memcpy(all + head + n, at + m, size - head - m);
    scratch_write(s, file, all, size - m + n);
    free(all);
    free(old);
}

// Sets the float32 at `index` of a tensor of a .safetensors file. The fixtures' headers have
// their keys in the order name, dtype, shape, data_offsets.
SCRATCH void scratch_poke(struct scratch *s, const char *file, const char *tensor,
                          size_t index, float value)
{
    char key[300];
    size_t size, begin = 0;
    uint64_t header;
    char *all = scratch_read(s, file, &size);
    memcpy(&header, all, 8);
    snprintf(key, sizeof key, "\"%s\":{", tensor);
    char *at = memmem(all + 8, header, key, strlen(key));
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":[");
    assert_non_null(at);
    begin = strtoul(at + strlen("\"data_offsets\":["), NULL, 10);
    memcpy(all + 8 + header + begin + 4 * index, &value, sizeof value);
    scratch_write(s, file, all, size);
    free(all);
}

// sha256sum's answer, 64 digits and a 0.
SCRATCH void scratch_sha256(struct scratch *s, const char *file, char hex[65])
{
    char command[600];
    snprintf(command, sizeof command, "sha256sum '%s/%s'", s->dir, file);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fread(hex, 1, 64, p), 64);
    hex[64] = 0;
    pclose(p);
}

#endif
