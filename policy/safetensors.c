// safetensors: opening a file and checking every claim of its header.
//
// The order matters. Sizes come before any allocation (N is believed only when it is under the
// cap and inside the file), bytes before the JSON parser (it recurses), each entry before the
// whole, and last the one rule that makes the rest true: sorted by offset, the tensors tile the
// data section from its first byte to its last.
#include "policy/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/jscan.h"
#include "policy/refuse.h"
#include "policy/safetensors_priv.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [ST_BOOL] = {"BOOL", 1}, [ST_U8] = {"U8", 1},           [ST_I8] = {"I8", 1},
    [ST_I16] = {"I16", 2},   [ST_U16] = {"U16", 2},         [ST_F16] = {"F16", 2},
    [ST_BF16] = {"BF16", 2}, [ST_I32] = {"I32", 4},         [ST_U32] = {"U32", 4},
    [ST_F32] = {"F32", 4},   [ST_F64] = {"F64", 8},         [ST_I64] = {"I64", 8},
    [ST_U64] = {"U64", 8},   [ST_F8_E5M2] = {"F8_E5M2", 1}, [ST_F8_E4M3] = {"F8_E4M3", 1},
};

const char *st_dtype_name(enum st_dtype d)
{
    return dtypes[d].name;
}

size_t st_dtype_bytes(enum st_dtype d)
{
    return dtypes[d].bytes;
}

// Git keeps large files elsewhere; a clone without git-lfs has 130 bytes of text instead.
static bool is_lfs_pointer(const unsigned char le[8])
{
    return memcmp(le, "version ", 8) == 0;
}

static int read_header(struct st_file *f, struct policy_error *err)
{
    const char *remedy = "the file is damaged or no .safetensors; copy it again";
    uint64_t size = (uint64_t)f->stat.st_size, n;
    unsigned char le[8];
    char *text;
    size_t len;
    int r;

    if (size < sizeof le)
        return refuse(err, EINVAL, "%s has %" PRIu64 " bytes: %s", f->name, size, remedy);
    r = st_pread(f, le, sizeof le, 0, err);
    if (r < 0)
        return r;
    if (is_lfs_pointer(le))
        return refuse(err, EINVAL,
                      "%s is a Git LFS pointer, not the file itself; run `git lfs pull` "
                      "where it was cloned",
                      f->name);
    n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | le[i];
    if (n > ST_MAX_HEADER)
        return refuse(err, EINVAL,
                      "%s claims a header of %" PRIu64 " bytes (limit %d): %s", f->name,
                      n, ST_MAX_HEADER, remedy);
    if (n > size - sizeof le)
        return refuse(err, EINVAL,
                      "%s claims a header of %" PRIu64 " bytes but has only %" PRIu64
                      ": %s",
                      f->name, n, size, remedy);
    f->head = malloc(sizeof le + n);
    if (!f->head)
        return refuse(err, ENOMEM, "no memory for the header of %s", f->name);
    memcpy(f->head, le, sizeof le);
    text = f->head + sizeof le;
    len = (size_t)n;
    r = st_pread(f, text, len, sizeof le, err);
    while (len > 0 && text[len - 1] == ' ') // the only padding that all readers agree on
        len--;
    if (r == 0 && (len < 2 || text[0] != '{' || text[len - 1] != '}'))
        r = refuse(err, EINVAL,
                   "the header of %s is not one JSON object padded with spaces: %s",
                   f->name, remedy);
    if (r == 0 && !(f->header = jscan_parse(text, len, ST_MAX_DEPTH, f->name, err)))
        r = -EINVAL;
    f->data_offset = sizeof le + n;
    f->data_bytes = size - f->data_offset;
    return r;
}

// A non-negative integer. jansson has refused what does not fit 63 bits.
static bool get_u64(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static bool get_dtype(const json_t *v, enum st_dtype *out)
{
    const char *name = json_string_value(v);

    for (size_t i = 0; name && i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(name, dtypes[i].name) == 0) {
            *out = (enum st_dtype)i;
            return true;
        }
    return false;
}

// Fills rank and shape. The product of the dimensions and the dtype's size must fit 64 bits
// even where another dimension is 0: a reader that multiplies in another order would wrap.
static const char *get_shape(const json_t *v, struct st_tensor *t)
{
    uint64_t product = dtypes[t->dtype].bytes;
    bool empty = false;

    if (!json_is_array(v))
        return "its shape is no list";
    if (json_array_size(v) > ST_MAX_RANK)
        return "it has too many dimensions";
    t->rank = (int)json_array_size(v);
    for (int i = 0; i < t->rank; i++) {
        if (!get_u64(json_array_get(v, (size_t)i), &t->shape[i]))
            return "a dimension is no whole number";
        if (t->shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, t->shape[i], &product))
            return "its shape overflows";
    }
    t->nbytes = empty ? 0 : product;
    return NULL;
}

static const char *get_offsets(const json_t *v, const struct st_file *f,
                               struct st_tensor *t)
{
    uint64_t end;

    if (!json_is_array(v) || json_array_size(v) != 2 ||
        !get_u64(json_array_get(v, 0), &t->begin) || !get_u64(json_array_get(v, 1), &end))
        return "its data_offsets are not two whole numbers";
    if (t->begin > end || end > f->data_bytes)
        return "its data_offsets lie outside the file (cut short?)";
    if (end - t->begin != t->nbytes)
        return "its data_offsets do not match its dtype and shape";
    return NULL;
}

static const char *get_tensor(const json_t *v, const struct st_file *f,
                              struct st_tensor *t)
{
    const char *wrong;

    if (t->name[0] == 0 || strlen(t->name) > ST_MAX_NAME)
        return "its name is empty or longer than 256 bytes";
    if (!json_is_object(v))
        return "its entry is no object";
    if (!get_dtype(json_object_get(v, "dtype"), &t->dtype))
        return "its dtype is missing or unknown";
    wrong = get_shape(json_object_get(v, "shape"), t);
    if (!wrong)
        wrong = get_offsets(json_object_get(v, "data_offsets"), f, t);
    if (!wrong && json_object_size(v) != 3)
        wrong = "its entry has a field other than dtype, shape and data_offsets";
    return wrong;
}

static int by_position(const void *a, const void *b)
{
    const struct st_tensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->nbytes != y->nbytes)
        return x->nbytes < y->nbytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct st_tensor *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static int read_entries(struct st_file *f, struct policy_error *err)
{
    const char *key, *wrong;
    json_t *v;

    f->tensor = calloc(json_object_size(f->header) + 1, sizeof *f->tensor);
    f->by_name = calloc(json_object_size(f->header) + 1, sizeof(void *));
    if (!f->tensor || !f->by_name)
        return refuse(err, ENOMEM, "no memory for the tensor table of %s", f->name);
    json_object_foreach(f->header, key, v)
    {
        struct st_tensor *t = &f->tensor[f->count];

        if (strcmp(key, "__metadata__") == 0)
            continue;
        if (f->count == ST_MAX_TENSORS)
            return refuse(err, EINVAL, "%s has more than %d tensors", f->name,
                          ST_MAX_TENSORS);
        t->name = key;
        wrong = get_tensor(v, f, t);
        if (wrong)
            return refuse(err, EINVAL, "%s is refused at tensor '%.100s': %s", f->name,
                          key, wrong);
        f->count++;
    }
    qsort(f->tensor, f->count, sizeof *f->tensor, by_position);
    for (size_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->tensor[i];
    qsort(f->by_name, f->count, sizeof(void *), by_name);
    return 0;
}

static int check_tiling(const struct st_file *f, struct policy_error *err)
{
    uint64_t end = 0;

    for (size_t i = 0; i < f->count; i++) {
        const struct st_tensor *t = &f->tensor[i];

        if (t->begin != end)
            return refuse(
                err, EINVAL,
                "%s is refused: the data of tensor '%.100s' %s the one before it",
                f->name, t->name, t->begin < end ? "overlaps" : "leaves a hole behind");
        end += t->nbytes;
    }
    if (end != f->data_bytes)
        return refuse(err, EINVAL,
                      "%s is refused: %" PRIu64 " bytes of data belong to no tensor",
                      f->name, f->data_bytes - end);
    return 0;
}

static const struct st_tensor *find_own(const struct st_file *f, const char *name)
{
    const struct st_tensor key = {.name = name}, *k = &key;
    const struct st_tensor *const *hit;

    hit = bsearch(&k, f->by_name, f->count, sizeof(void *), by_name);
    return hit ? *hit : NULL;
}

static int read_metadata(struct st_file *f, struct policy_error *err)
{
    json_t *meta = json_object_get(f->header, "__metadata__"), *v;
    const char *key;

    if (!meta)
        return 0;
    if (!json_is_object(meta))
        return refuse(err, EINVAL, "%s is refused: __metadata__ is no object", f->name);
    f->alias = calloc(json_object_size(meta) + 1, sizeof *f->alias);
    if (!f->alias)
        return refuse(err, ENOMEM, "no memory for the metadata of %s", f->name);
    json_object_foreach(meta, key, v)
    {
        const struct st_tensor *kept;

        if (!json_is_string(v))
            return refuse(err, EINVAL,
                          "%s is refused: __metadata__ '%.100s' is no string", f->name,
                          key);
        kept = find_own(f, json_string_value(v));
        if (kept && !find_own(f, key))
            f->alias[f->n_aliases++] = (struct st_alias){key, kept};
    }
    return 0;
}

static int read_all(struct st_file *f, struct policy_error *err)
{
    int r = read_header(f, err);

    if (r == 0)
        r = read_entries(f, err);
    if (r == 0)
        r = check_tiling(f, err);
    if (r == 0)
        r = read_metadata(f, err);
    if (r == 0)
        r = st_unchanged(f, err);
    return r;
}

// With a place, `file` is a name in it; without, a path.
static int open_file(struct st_file **out, const struct place *place, const char *file,
                     struct policy_error *err)
{
    struct st_file *f = calloc(1, sizeof *f);
    struct place_file opened;
    int r;

    *out = NULL;
    if (!f)
        return refuse(err, ENOMEM, "no memory to open %.200s", file);
    r = place ? place_open(&opened, place, file, err)
              : place_open_path(&opened, file, err);
    f->fd = opened.fd;
    f->stat = opened.stat;
    memcpy(f->name, opened.shown, sizeof f->name);
    if (r == 0)
        r = read_all(f, err);
    if (r < 0)
        st_close(f);
    else
        *out = f;
    return r;
}

int st_open(struct st_file **out, const char *path, struct policy_error *err)
{
    return open_file(out, NULL, path, err);
}

int st_open_at(struct st_file **out, const struct place *place, const char *file,
               struct policy_error *err)
{
    return open_file(out, place, file, err);
}

void st_close(struct st_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    json_decref(f->header);
    free(f->head);
    free(f->alias);
    free(f->by_name);
    free(f->tensor);
    free(f);
}

size_t st_count(const struct st_file *f)
{
    return f->count;
}

const struct st_tensor *st_at(const struct st_file *f, size_t i)
{
    return &f->tensor[i];
}

uint64_t st_elements(const struct st_tensor *t)
{
    return t->nbytes / dtypes[t->dtype].bytes;
}

const struct st_tensor *st_find(const struct st_file *f, const char *name)
{
    const struct st_tensor *t = find_own(f, name);

    for (size_t i = 0; !t && i < f->n_aliases; i++)
        if (strcmp(f->alias[i].removed, name) == 0)
            t = f->alias[i].kept;
    return t;
}

size_t st_alias_count(const struct st_file *f)
{
    return f->n_aliases;
}

const struct st_tensor *st_alias_at(const struct st_file *f, size_t i,
                                    const char **removed)
{
    *removed = f->alias[i].removed;
    return f->alias[i].kept;
}

const char *st_metadata(const struct st_file *f, const char *key)
{
    return json_string_value(
        json_object_get(json_object_get(f->header, "__metadata__"), key));
}
