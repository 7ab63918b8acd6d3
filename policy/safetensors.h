// safetensors: reads a .safetensors file without trusting it. The header is checked whole
// before any tensor is handed out; data is read with pread, never mapped, so that a file cut
// short while open is an error and not a SIGBUS. All functions are plain.
//
// A file is: N (u64, little endian) | N bytes of JSON, space padded | data. Refused is whatever
// two readers could understand differently: N over the cap or past the end of the file, a first
// byte other than '{', padding other than trailing 0x20, bytes that are not UTF-8, duplicate
// keys at any level, unknown dtypes and unknown fields, a shape whose product overflows (zero
// dimensions do not excuse it), and data that does not tile the rest of the file exactly: no
// overlap, no hole, no alias, nothing behind the last tensor.
#ifndef ACTD_SAFETENSORS_H
#define ACTD_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "policy/place.h"

#define ST_MAX_RANK    8
#define ST_MAX_NAME    256 // bytes of a tensor's name
#define ST_MAX_TENSORS 4096
#define ST_MAX_DEPTH   4             // levels of the header's JSON; a valid one has 3
#define ST_MAX_HEADER  (1024 * 1024) // bytes; the format allows 100 MB, no policy needs it

enum st_dtype {
    ST_BOOL,
    ST_U8,
    ST_I8,
    ST_I16,
    ST_U16,
    ST_F16,
    ST_BF16,
    ST_I32,
    ST_U32,
    ST_F32,
    ST_F64,
    ST_I64,
    ST_U64,
    ST_F8_E5M2,
    ST_F8_E4M3,
};

struct st_tensor {
    const char *name; // owned by the file
    enum st_dtype dtype;
    int rank;
    uint64_t shape[ST_MAX_RANK];
    uint64_t begin;  // bytes from the start of the data section
    uint64_t nbytes; // equal to the product of shape times the dtype's size
};

struct st_file;

// Opens and validates. Symbolic links are followed (model hubs' caches are made of them), what
// they lead to must be a regular file. *out is the caller's to st_close. 0 or -errno with err
// filled: -ENOENT no such file, -EINVAL refused, -EIO, -ENOMEM.
int st_open(struct st_file **out, const char *path, struct policy_error *err);
// The same for a file of a checkpoint, by its rules.
int st_open_at(struct st_file **out, const struct place *place, const char *file,
               struct policy_error *err);
void st_close(struct st_file *f); // NULL is fine

size_t st_count(const struct st_file *f);
const struct st_tensor *st_at(const struct st_file *f,
                              size_t i);         // order of the data section
uint64_t st_elements(const struct st_tensor *t); // product of shape

// By exact name, following `removed_name -> kept_name` entries of __metadata__ (writers drop
// tensors that share memory with another). NULL if none.
const struct st_tensor *st_find(const struct st_file *f, const char *name);

// Those entries of __metadata__, i < st_alias_count: the tensor kept, *removed its other name
// (owned by the file). A name that is a tensor's own is never an alias.
size_t st_alias_count(const struct st_file *f);
const struct st_tensor *st_alias_at(const struct st_file *f, size_t i,
                                    const char **removed);

// A value of __metadata__, or NULL. Owned by the file.
const char *st_metadata(const struct st_file *f, const char *key);

// Reads a whole tensor as float32 (from F32, F16, BF16, F64 or an integer type) into dst,
// which holds n values, n equal to the tensor's element count. Refuses values that are not
// finite and a file that changed (size, time or inode) since st_open.
// 0 or -errno with err filled: -EINVAL refused, -ESTALE the file changed, -EIO.
int st_read_f32(struct st_file *f, const struct st_tensor *t, float *dst, size_t n,
                struct policy_error *err);
// The same without the check for finite values (statistics report infinities themselves).
int st_read_f32_raw(struct st_file *f, const struct st_tensor *t, float *dst, size_t n,
                    struct policy_error *err);

// Reads a tensor's bytes as they are: n equal to its nbytes. Errors as st_read_f32.
int st_read_bytes(struct st_file *f, const struct st_tensor *t, void *dst, size_t n,
                  struct policy_error *err);

// A tensor and where its values are wanted, as float32: dst holds n, which must be the number
// that the tensor has. Where they are only passing through, dst is NULL: `begin` then says where
// to put them (NULL: no memory), and `done` takes them as soon as all are there and were found
// finite, before the next tensor is read: the same place may serve again. The other wants of a
// tensor, if there are several, get the same values.
struct st_want {
    const struct st_tensor *tensor;
    float *dst;
    size_t n;
    float *(*begin)(void *arg, size_t n);
    void (*done)(void *arg, float *values);
    void *arg;
};

// Reads the whole file once, in its own order, whatever order things are wanted in: each block
// goes to where it is wanted, is looked through for values that are not finite and is hashed
// while it is still in the cache. sha256 is that of the file, of the very bytes that were used;
// what nobody wants is read for it too. Sorts `want`. cancel may be NULL.
// 0 or -errno with err filled: as st_read_f32, -ECANCELED.
int st_read_wanted(struct st_file *f, struct st_want *want, size_t n,
                   const _Atomic bool *cancel, char sha256[POLICY_DIGEST_HEX],
                   struct policy_error *err);

const char *st_dtype_name(enum st_dtype d);

#endif
