// safetensors_priv: what safetensors.c (checks) and safetensors_read.c (bytes) share.
#ifndef ACTD_SAFETENSORS_PRIV_H
#define ACTD_SAFETENSORS_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "policy/safetensors.h"

struct st_alias {
    const char *removed; // a key of __metadata__
    const struct st_tensor *kept;
};

struct st_file {
    int fd;
    struct stat stat;     // as found at the start of st_open
    uint64_t data_offset; // bytes from the start of the file
    uint64_t data_bytes;
    char *head;     // (data_offset) length and header as read, for the file's digest
    json_t *header; // owns every name
    size_t count;
    struct st_tensor *tensor;         // (count) order of the data section
    const struct st_tensor **by_name; // (count)
    size_t n_aliases;
    struct st_alias *alias; // (n_aliases)
    char name[PLACE_NAME];  // for sentences
};

size_t st_dtype_bytes(enum st_dtype d);

// n values at src, not aligned, to float32. False for a dtype that holds no numbers we read.
bool st_convert(enum st_dtype dtype, const char *src, float *dst, size_t n);

// The sentence for a value that is not finite. -EINVAL.
int st_not_finite(const struct st_file *f, const struct st_tensor *t, size_t index,
                  struct policy_error *err);

// Reads n bytes at offset. 0 or -errno with err filled.
int st_pread(const struct st_file *f, void *dst, size_t n, uint64_t offset,
             struct policy_error *err);

// 0 if the open file still has the size, time and inode of st_open, else -ESTALE.
int st_unchanged(const struct st_file *f, struct policy_error *err);

#endif
