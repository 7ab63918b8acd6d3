// Bad weights: what is random is drawn from the run's seed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/swap/swaps_bad.h"

static uint8_t *reach; // its weights, read once
static size_t reach_size;
static char spoilt[256];

static size_t header_size(void)
{
    uint64_t n;

    memcpy(&n, reach, 8);
    return (size_t)n;
}

const char *swaps_bad_path(const struct swaps_world *w, const char *file)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%.120s/bad/%s", w->policies, file);
    return path;
}

void swaps_remove_bad(const struct swaps_world *w)
{
    char command[PATH_MAX + 16];

    spoilt[0] = 0;
    snprintf(command, sizeof command, "rm -rf '%.120s/bad'", w->policies);
    if (system(command) != 0)
        fprintf(stderr, "swaps: %s is left over\n", w->policies);
}

const char *swaps_spoilt(void)
{
    return spoilt;
}

int swaps_bad_base(const struct swaps_world *w)
{
    int rc =
        reach ? 0 : swaps_read("config/policies/reach/" WEIGHTS, &reach, &reach_size);

    return rc ? rc : swaps_copy_small(w, "bad");
}

static int put(const struct swaps_world *w, const void *bytes, size_t n)
{
    return swaps_write(swaps_bad_path(w, WEIGHTS), bytes, n);
}

// The weights behind another header.
static int put_header(const struct swaps_world *w, const char *text)
{
    size_t old = 8 + header_size(), n = strlen(text), data = reach_size - old;
    uint8_t *all = malloc(8 + n + data);
    int rc;

    if (!all)
        return -ENOMEM;
    memcpy(all, &(uint64_t){n}, 8);
    memcpy(all + 8, text, n);
    memcpy(all + 8 + n, reach + old, data);
    rc = put(w, all, 8 + n + data);
    free(all);
    return rc;
}

static json_t *header(void)
{
    return json_loadb((const char *)reach + 8, header_size(), 0, NULL);
}

static int put_json(const struct swaps_world *w, json_t *h)
{
    char *text = json_dumps(h, JSON_COMPACT | JSON_PRESERVE_ORDER);
    int rc = text ? put_header(w, text) : -ENOMEM;

    free(text);
    json_decref(h);
    return rc;
}

// Any tensor of the header; its name goes to spoilt.
static json_t *any_tensor(json_t *h, uint64_t *random)
{
    size_t skip = 1 + swaps_below(random, json_object_size(h) - 1);
    const char *name;
    json_t *value;

    json_object_foreach(h, name, value)
    {
        if (strcmp(name, "__metadata__") == 0 || --skip > 0)
            continue;
        snprintf(spoilt, sizeof spoilt, "%s", name);
        return value;
    }
    return any_tensor(h, random);
}

// ---- weights ---------------------------------------------------------------------------------

static int cut(const struct swaps_world *w, size_t n)
{
    int rc = swaps_bad_base(w);

    return rc ? rc : put(w, reach, n);
}

int bad_cut_in_length(const struct swaps_world *w, uint64_t *random)
{
    return cut(w, swaps_below(random, 8));
}

int bad_cut_in_header(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    return rc ? rc : cut(w, 8 + swaps_below(random, header_size()));
}

int bad_cut_anywhere(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    return rc ? rc : cut(w, 8 + header_size() + swaps_below(random, reach_size - 20000));
}

int bad_cut_last(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    (void)random;
    return rc ? rc : cut(w, reach_size - 1);
}

int bad_longer(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    (void)random;
    rc = rc ? rc : put(w, reach, reach_size);
    return rc                                                            ? rc
           : truncate(swaps_bad_path(w, WEIGHTS), (off_t)reach_size + 1) ? -errno
                                                                         : 0;
}

// A byte of the header between its first name and its padding.
int bad_broken_header(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    size_t at = 64 + (rc ? 0 : swaps_below(random, header_size() - 300));
    uint8_t was;

    if (rc != 0)
        return rc;
    was = reach[8 + at];
    reach[8 + at] ^= (uint8_t)(1 + swaps_below(random, 255));
    rc = put(w, reach, reach_size);
    reach[8 + at] = was;
    return rc;
}

static int claim(const struct swaps_world *w, uint64_t length)
{
    int rc = swaps_bad_base(w);
    uint64_t was;

    if (rc != 0)
        return rc;
    memcpy(&was, reach, 8);
    memcpy(reach, &length, 8);
    rc = put(w, reach, reach_size);
    memcpy(reach, &was, 8);
    return rc;
}

int bad_hostile_length(const struct swaps_world *w, uint64_t *random)
{
    static const uint64_t lengths[] = {
        0,       1, 100000001, 1u << 31, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63,
        23861068};

    return claim(w, lengths[swaps_below(random, sizeof lengths / sizeof *lengths)]);
}

int bad_hostile_depth(const struct swaps_world *w, uint64_t *random)
{
    static char text[60000];
    int rc = swaps_bad_base(w);

    (void)random;
    memset(text, '[', sizeof text - 1);
    memcpy(text, "{\"a\":", 5);
    return rc ? rc : put_header(w, text);
}

int bad_hostile_shape(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    json_t *h = rc ? NULL : header(), *t = h ? any_tensor(h, random) : NULL;

    if (!t)
        return -EIO;
    json_object_set_new(
        t, "shape",
        json_pack("[I,I]", (json_int_t)1 << 62, (json_int_t)8)); // 0 in 64 bits
    return put_json(w, h);
}

int bad_hostile_overlap(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    json_t *h = rc ? NULL : header(), *t = h ? any_tensor(h, random) : NULL;
    json_t *at = t ? json_object_get(t, "data_offsets") : NULL;
    json_int_t by;

    if (!at)
        return -EIO;
    by = json_integer_value(json_array_get(at, 0)) ? -2 : 2;
    for (size_t i = 0; i < 2; i++)
        json_array_set_new(at, i,
                           json_integer(json_integer_value(json_array_get(at, i)) + by));
    return put_json(w, h);
}

int bad_twice(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    char *text, *all;
    json_t *h = rc ? NULL : header();

    if (!h)
        return -EIO;
    (void)any_tensor(h, random);
    text = json_dumps(h, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(h);
    if (!text ||
        asprintf(&all,
                 "{\"%s\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]},%s",
                 spoilt, text + 1) < 0)
        return -ENOMEM;
    rc = put_header(w, all);
    free(all);
    free(text);
    return rc;
}

int bad_other_dtype(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    json_t *h = rc ? NULL : header(), *t = h ? any_tensor(h, random) : NULL;

    if (!t)
        return -EIO;
    json_object_set_new(t, "dtype", json_string("I16"));
    return put_json(w, h);
}

// One is missing, and one nobody knows is there.
int bad_other_tensor(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    json_t *h = rc ? NULL : header(), *t = h ? any_tensor(h, random) : NULL;

    if (!t)
        return -EIO;
    json_incref(t);
    json_object_del(h, spoilt);
    json_object_set_new(h, "model.elsewhere.weight", t);
    return put_json(w, h);
}

// A value that is none, somewhere in a tensor.
int bad_not_finite(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    json_t *h = rc ? NULL : header(), *t = h ? any_tensor(h, random) : NULL;
    json_t *at = t ? json_object_get(t, "data_offsets") : NULL;
    size_t from, values, place;
    uint8_t was[2];

    if (!at)
        return -EIO;
    from = (size_t)json_integer_value(json_array_get(at, 0));
    values = ((size_t)json_integer_value(json_array_get(at, 1)) - from) / 2;
    place = 8 + header_size() + from + 2 * swaps_below(random, values);
    json_decref(h);
    memcpy(was, reach + place, 2);
    memcpy(reach + place, swaps_below(random, 2) ? "\xc0\x7f" : "\x80\xff",
           2); // NaN, -inf
    rc = put(w, reach, reach_size);
    memcpy(reach + place, was, 2);
    return rc;
}

// Weights that are fine by themselves, and a golden forward of others.
int bad_wrong_golden(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);
    uint8_t *turned = rc ? NULL : malloc(reach_size);

    if (!turned)
        return -ENOMEM;
    memcpy(turned, reach, reach_size);
    swaps_turn(turned, reach_size, swaps_random(random));
    rc = put(w, turned, reach_size);
    free(turned);
    return rc ? rc
              : swaps_copy("config/policies/reach/golden.safetensors",
                           swaps_bad_path(w, "golden.safetensors"));
}

int swaps_bad_whole(const struct swaps_world *w)
{
    int rc = swaps_bad_base(w);

    return rc ? rc : put(w, reach, reach_size);
}
