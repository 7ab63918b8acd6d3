// safetensors_read: the bytes of a tensor as float32.
#include "policy/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "policy/finite.h"
#include "policy/refuse.h"
#include "policy/safetensors_priv.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are little endian, so are we");

#define BLOCK 16384 // bytes read at a time when values need converting

int st_pread(const struct st_file *f, void *dst, size_t n, uint64_t offset,
             struct policy_error *err)
{
    char *p = dst;

    while (n > 0) {
        ssize_t got = pread(f->fd, p, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return refuse(err, errno, "cannot read %s: %s", f->name, strerror(errno));
        if (got == 0)
            return refuse(err, ESTALE,
                          "%s was cut short while it was read: load it again", f->name);
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}

int st_unchanged(const struct st_file *f, struct policy_error *err)
{
    struct stat now;

    if (fstat(f->fd, &now) < 0)
        return refuse(err, errno, "cannot stat %s: %s", f->name, strerror(errno));
    if (now.st_size != f->stat.st_size || now.st_ino != f->stat.st_ino ||
        now.st_mtim.tv_sec != f->stat.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != f->stat.st_mtim.tv_nsec)
        return refuse(err, ESTALE, "%s changed while it was read: load it again",
                      f->name);
    return 0;
}

static float from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

// Moved into float32's place, exponent and mantissa are off by exactly 2^112, subnormals too.
static float from_f16(uint16_t h)
{
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13;
    float v;

    memcpy(&v, &bits, sizeof v);
    v *= 0x1p112f;
    if ((h & 0x7c00) == 0x7c00)
        v = h & 1023 ? NAN : INFINITY;
    return h & 0x8000 ? -v : v;
}

// A macro only because the element type differs; src is not aligned for it.
#define CONVERT(type, expression)                     \
    do {                                              \
        type v;                                       \
        for (size_t i = 0; i < n; i++) {              \
            memcpy(&v, src + i * sizeof v, sizeof v); \
            dst[i] = (expression);                    \
        }                                             \
    } while (0)

// n values at src to float32. False for a dtype that holds no numbers we read.
bool st_convert(enum st_dtype dtype, const char *src, float *dst, size_t n)
{
    switch (dtype) {
    case ST_F16:
        CONVERT(uint16_t, from_f16(v));
        return true;
    case ST_BF16:
        CONVERT(uint16_t, from_bf16(v));
        return true;
    case ST_F64:
        CONVERT(double, (float)v);
        return true;
    case ST_U8:
        CONVERT(uint8_t, (float)v);
        return true;
    case ST_I8:
        CONVERT(int8_t, (float)v);
        return true;
    case ST_U16:
        CONVERT(uint16_t, (float)v);
        return true;
    case ST_I16:
        CONVERT(int16_t, (float)v);
        return true;
    case ST_U32:
        CONVERT(uint32_t, (float)v);
        return true;
    case ST_I32:
        CONVERT(int32_t, (float)v);
        return true;
    case ST_U64:
        CONVERT(uint64_t, (float)v);
        return true;
    case ST_I64:
        CONVERT(int64_t, (float)v);
        return true;
    default: // F32 needs no conversion; BOOL and the 8-bit floats are nothing a policy stores
        return false;
    }
}

static int read_converted(const struct st_file *f, const struct st_tensor *t, float *dst,
                          struct policy_error *err)
{
    size_t width = st_dtype_bytes(t->dtype);
    char block[BLOCK];
    uint64_t done = 0;

    while (done < t->nbytes) {
        size_t n = t->nbytes - done < BLOCK ? (size_t)(t->nbytes - done) : BLOCK;
        int r = st_pread(f, block, n, f->data_offset + t->begin + done, err);

        if (r < 0)
            return r;
        st_convert(t->dtype, block, dst + done / width, n / width);
        done += n;
    }
    return 0;
}

int st_read_f32_raw(struct st_file *f, const struct st_tensor *t, float *dst, size_t n,
                    struct policy_error *err)
{
    int r;

    if (n != st_elements(t))
        return refuse(err, EINVAL,
                      "tensor '%.100s' of %s has %" PRIu64 " values, not %zu", t->name,
                      f->name, st_elements(t), n);
    if (t->dtype != ST_F32 && !st_convert(t->dtype, NULL, NULL, 0))
        return refuse(
            err, EINVAL,
            "tensor '%.100s' of %s is stored as %s: save it as F32, F16 or BF16", t->name,
            f->name, st_dtype_name(t->dtype));
    r = st_unchanged(f, err);
    if (r == 0 && t->dtype == ST_F32)
        r = st_pread(f, dst, (size_t)t->nbytes, f->data_offset + t->begin, err);
    else if (r == 0)
        r = read_converted(f, t, dst, err);
    if (r == 0)
        r = st_unchanged(f, err);
    return r;
}

int st_not_finite(const struct st_file *f, const struct st_tensor *t, size_t index,
                  struct policy_error *err)
{
    return refuse(err, EINVAL,
                  "tensor '%.100s' of %s holds a value that is not finite at index %zu: "
                  "the training diverged, use an earlier checkpoint",
                  t->name, f->name, index);
}

int st_read_f32(struct st_file *f, const struct st_tensor *t, float *dst, size_t n,
                struct policy_error *err)
{
    int r = st_read_f32_raw(f, t, dst, n, err);
    size_t good = r == 0 ? finite_prefix(dst, n) : n;

    return good < n ? st_not_finite(f, t, good, err) : r;
}

int st_read_bytes(struct st_file *f, const struct st_tensor *t, void *dst, size_t n,
                  struct policy_error *err)
{
    int r;

    if (n != t->nbytes)
        return refuse(err, EINVAL, "tensor '%.100s' of %s has %" PRIu64 " bytes, not %zu",
                      t->name, f->name, t->nbytes, n);
    r = st_unchanged(f, err);
    if (r == 0)
        r = st_pread(f, dst, n, f->data_offset + t->begin, err);
    return r == 0 ? st_unchanged(f, err) : r;
}
