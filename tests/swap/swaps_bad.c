// Policies that must not take over: each is reach with one thing wrong, made anew each time,
// with what is random drawn from the run's seed.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/swap/swaps_bad.h"

// ---- files -----------------------------------------------------------------------------------

static int linked_weights(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    (void)random;
    return rc                                                          ? rc
           : symlink("../good-1/" WEIGHTS, swaps_bad_path(w, WEIGHTS)) ? -errno
                                                                       : 0;
}

static int linked_directory(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    char *path = strdup(swaps_bad_path(w, ""));
    int rc;

    path[strlen(path) - 1] = 0;
    rc = symlink("good-1", path) ? -errno : 0;
    free(path);
    return rc;
}

static int pipe_of_weights(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_base(w);

    (void)random;
    return rc ? rc : mkfifo(swaps_bad_path(w, WEIGHTS), 0644) ? -errno : 0;
}

static int everybodys(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_whole(w);

    return rc ? rc
           : chmod(swaps_bad_path(w, WEIGHTS), swaps_below(random, 2) ? 0666 : 0664)
               ? -errno
               : 0;
}

static int everybodys_config(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_whole(w);

    (void)random;
    return rc ? rc : chmod(swaps_bad_path(w, "config.json"), 0646) ? -errno : 0;
}

static int a_strangers(const struct swaps_world *w, uint64_t *random)
{
    int rc = swaps_bad_whole(w);

    (void)random;
    return rc ? rc : chown(swaps_bad_path(w, WEIGHTS), 54321, (gid_t)-1) ? -errno : 0;
}

static int without(const struct swaps_world *w, const char *file)
{
    int rc = swaps_bad_whole(w);

    return rc ? rc : unlink(swaps_bad_path(w, file)) ? -errno : 0;
}

static int no_weights(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return without(w, WEIGHTS);
}

static int no_config(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return without(w, "config.json");
}

static int no_sidecar(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return without(w, "policy.yaml");
}

// Replaces a word of one of the small files.
static int said_otherwise(const struct swaps_world *w, const char *file, const char *word,
                          const char *other)
{
    int rc = swaps_bad_whole(w);
    uint8_t *text;
    char *at, *all;
    size_t size;

    rc = rc ? rc : swaps_read(swaps_bad_path(w, file), &text, &size);
    if (rc != 0)
        return rc;
    at = strstr((char *)text, word);
    all = at ? malloc(size + strlen(other) + 1) : NULL;
    if (all) {
        sprintf(all, "%.*s%s%s", (int)(at - (char *)text), (char *)text, other,
                at + strlen(word));
        rc = swaps_write(swaps_bad_path(w, file), all, strlen(all));
    } else {
        rc = -ENOENT;
    }
    free(all);
    free(text);
    return rc;
}

static int other_width(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "config.json", "\"dim_model\": 128", "\"dim_model\": 256");
}

static int other_backbone(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "config.json", "resnet18", "resnet34");
}

static int other_chunk(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "config.json", "\"chunk_size\": 24", "\"chunk_size\": 48");
}

static int other_type(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "config.json", "\"act\"", "\"pi0\"");
}

static int other_order(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "policy.yaml", "[shoulder_pan.pos, shoulder_lift.pos",
                          "[shoulder_lift.pos, shoulder_pan.pos");
}

static int other_rate(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "policy.yaml", "rate_hz: 25", "rate_hz: 50");
}

static int other_units(const struct swaps_world *w, uint64_t *random)
{
    (void)random;
    return said_otherwise(w, "policy.yaml", "units: rad", "units: deg");
}

// action.mean and action.std lie first and second, six values each.
static int other_statistics(const struct swaps_world *w, uint64_t *random)
{
    static const char file[] =
        "policy_postprocessor_step_0_unnormalizer_processor.safetensors";
    uint8_t *bytes;
    uint64_t header;
    size_t size;
    int rc = swaps_bad_whole(w);

    rc = rc ? rc : swaps_read(swaps_bad_path(w, file), &bytes, &size);
    if (rc != 0)
        return rc;
    memcpy(&header, bytes, 8);
    memcpy(bytes + 8 + header + 4 * swaps_below(random, 12), "\0\0\xc0\x7f", 4);
    rc = swaps_write(swaps_bad_path(w, file), bytes, size);
    free(bytes);
    return rc;
}

// What follows the name in `told` must be in the refusal; "%" stands for the spoilt tensor.
const struct swaps_bad swaps_bad[] = {
    {"cut within the length", NULL, bad_cut_in_length, {WEIGHTS}},
    {"cut within the header", NULL, bad_cut_in_header, {WEIGHTS}},
    {"cut anywhere", NULL, bad_cut_anywhere, {WEIGHTS}},
    {"one byte short", NULL, bad_cut_last, {WEIGHTS}},
    {"one byte long", NULL, bad_longer, {WEIGHTS}},
    {"a byte of the header changed", NULL, bad_broken_header, {WEIGHTS}},
    {"hostile length of the header", NULL, bad_hostile_length, {WEIGHTS}},
    {"header 60 000 deep", NULL, bad_hostile_depth, {WEIGHTS}},
    {"shape that overflows", NULL, bad_hostile_shape, {WEIGHTS, "%"}},
    {"overlapping tensors", NULL, bad_hostile_overlap, {WEIGHTS}},
    {"a tensor twice", NULL, bad_twice, {WEIGHTS, "duplicate"}},
    {"other dtype", NULL, bad_other_dtype, {"%"}},
    {"other tensor", NULL, bad_other_tensor, {WEIGHTS}},
    {"not finite", NULL, bad_not_finite, {"%"}},
    {"wrong golden forward", NULL, bad_wrong_golden, {"golden"}},
    {"weights are a link", NULL, linked_weights, {WEIGHTS}},
    {"directory is a link", NULL, linked_directory, {"bad"}},
    {"weights are a pipe", NULL, pipe_of_weights, {WEIGHTS}},
    {"weights anybody may write", NULL, everybodys, {WEIGHTS}},
    {"config anybody may write", NULL, everybodys_config, {"config.json"}},
    {"weights of a stranger", NULL, a_strangers, {WEIGHTS}},
    {"no weights", NULL, no_weights, {WEIGHTS}},
    {"no config", NULL, no_config, {"config.json"}},
    {"no sidecar", NULL, no_sidecar, {"policy.yaml"}},
    {"other width", NULL, other_width, {"model."}},
    {"other backbone", NULL, other_backbone, {"model.backbone"}},
    {"other chunk", NULL, other_chunk, {"model."}},
    {"other type", NULL, other_type, {"pi0"}},
    {"other order of joints", NULL, other_order, {"shoulder"}},
    {"other rate", NULL, other_rate, {"rate"}},
    {"other units", NULL, other_units, {"unit"}},
    {"statistics not finite", NULL, other_statistics, {"action"}},
    {"name: ..", "..", NULL, {""}},
    {"name: .", ".", NULL, {""}},
    {"name: none", "", NULL, {""}},
    {"name: out and back", "../policies/good-1", NULL, {""}},
    {"name: a path", "good-1/", NULL, {""}},
    {"name: absolute", "/etc", NULL, {""}},
    {"name: unknown", "nobody", NULL, {"nobody"}},
    {"name: a line", "good-1\nIgnored", NULL, {""}},
    {"name: too long",
     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
     NULL,
     {""}},
};
const int swaps_bad_count = sizeof swaps_bad / sizeof *swaps_bad;
