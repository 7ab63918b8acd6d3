// Policies that may take over.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/swap/swaps_impl.h"
#include "tests/unit/act_fixture.h"

#define TURNED 64 // one weight in so many

uint64_t swaps_random(uint64_t *s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t swaps_below(uint64_t *s, uint64_t n)
{
    return swaps_random(s) % n;
}

int swaps_read(const char *path, uint8_t **bytes, size_t *size)
{
    FILE *f = fopen(path, "rbe");
    long n;

    *bytes = NULL;
    if (!f)
        return -errno;
    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);
    *size = n > 0 ? (size_t)n : 0;
    *bytes = malloc(*size + 1);
    if (!*bytes || fread(*bytes, 1, *size, f) != *size) {
        free(*bytes);
        *bytes = NULL;
    } else {
        (*bytes)[*size] = 0;
    }
    fclose(f);
    return *bytes ? 0 : -EIO;
}

int swaps_write(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wbe");
    int rc;

    if (!f)
        return -errno;
    rc = fwrite(bytes, 1, size, f) == size ? 0 : -EIO;
    if (fclose(f) != 0)
        rc = -EIO;
    return rc ? rc : chmod(path, 0644) ? -errno : 0;
}

// reach's files but its weights and its golden forward.
static const char *const small[] = {
    "config.json",
    "policy.yaml",
    "policy_preprocessor.json",
    "policy_postprocessor.json",
    "policy_preprocessor_step_3_normalizer_processor.safetensors",
    "policy_postprocessor_step_0_unnormalizer_processor.safetensors",
};

int swaps_copy(const char *from, const char *to)
{
    uint8_t *bytes;
    size_t size;
    int rc = swaps_read(from, &bytes, &size);

    rc = rc ? rc : swaps_write(to, bytes, size);
    free(bytes);
    return rc;
}

int swaps_copy_small(const struct swaps_world *w, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX];
    int rc;

    snprintf(to, sizeof to, "%.120s/%s", w->policies, name);
    rc = mkdir(to, 0755) == 0 || errno == EEXIST ? 0 : -errno;
    for (size_t i = 0; i < sizeof small / sizeof *small && rc == 0; i++) {
        snprintf(from, sizeof from, "config/policies/reach/%s", small[i]);
        snprintf(to, sizeof to, "%.120s/%s/%s", w->policies, name, small[i]);
        rc = swaps_copy(from, to);
    }
    return rc;
}

// Weights are 2 bytes each: the lowest bit of a BF16 is 0.8 % of it at most.
void swaps_turn(uint8_t *weights, size_t size, uint64_t seed)
{
    uint64_t header = 0;

    memcpy(&header, weights, 8); // little-endian, as we are
    for (size_t at = 8 + (size_t)header; at + 1 < size; at += 2)
        if (swaps_below(&seed, TURNED) == 0)
            weights[at] ^= 1;
}

int swaps_make_good(const struct swaps_world *w, uint64_t seed)
{
    int rc = 0;

    for (int i = 0; i < SWAPS_GOOD && rc == 0; i++) {
        char name[16], path[PATH_MAX];
        uint8_t *weights;
        size_t size;

        snprintf(name, sizeof name, "good-%d", i);
        snprintf(path, sizeof path, "%.120s/%s/model.safetensors", w->policies, name);
        rc = swaps_copy_small(w, name);
        rc = rc ? rc
                : swaps_read("config/policies/reach/model.safetensors", &weights, &size);
        if (rc != 0)
            break;
        if (i > 0)
            swaps_turn(weights, size, seed * 1000 + (uint64_t)i);
        rc = swaps_write(path, weights, size);
        free(weights);
    }
    return rc;
}

// ---- the full size ---------------------------------------------------------------------------

static const char sidecar[] =
    "rate_hz: 25\nunits: rad\n"
    "state_names: [shoulder_pan.pos, shoulder_lift.pos, elbow_flex.pos, wrist_flex.pos, "
    "wrist_roll.pos, gripper.pos]\n"
    "action_names: [shoulder_pan.pos, shoulder_lift.pos, elbow_flex.pos, wrist_flex.pos, "
    "wrist_roll.pos, gripper.pos]\n"
    "cameras: [observation.images.front]\n";

static int make_act(const struct swaps_world *w, const char *name,
                    const struct act_fixture *f)
{
    char dir[256], path[PATH_MAX];
    int rc;

    snprintf(dir, sizeof dir, "%.120s/%s", w->policies, name);
    rc = mkdir(dir, 0755) == 0 ? act_fixture_write(dir, f) : -errno;
    snprintf(path, sizeof path, "%.200s/policy.yaml", dir);
    return rc ? rc : swaps_write(path, sidecar, sizeof sidecar - 1);
}

int swaps_make_tiny(const struct swaps_world *w)
{
    int rc = 0;

    for (int i = 0; i < SWAPS_GOOD && rc == 0; i++) {
        struct act_fixture f = act_fixture_tiny();
        char name[16];

        f.seed = (uint64_t)i + 1;
        f.chunk_size = f.n_action_steps = 50;
        f.camera[0].height = f.camera[0].width = w->picture;
        snprintf(name, sizeof name, "good-%d", i);
        rc = make_act(w, name, &f);
    }
    return rc;
}

int swaps_make_full(const struct swaps_world *w)
{
    int rc = 0;

    for (uint64_t i = 0; i < 2 && rc == 0; i++) {
        struct act_fixture f = act_fixture_tiny();
        char name[16];

        f.seed = i + 1;
        f.dtype = ACT_FIXTURE_F32; // as LeRobot writes it: 200 MB to read
        f.dim_model = 512;
        f.dim_feedforward = 3200;
        f.n_heads = 8;
        f.n_encoder_layers = 4;
        f.latent_dim = 32;
        f.chunk_size = f.n_action_steps = 100;
        f.camera[0].height = f.camera[0].width = w->picture;
        snprintf(name, sizeof name, "full-%d", (int)i);
        rc = make_act(w, name, &f);
    }
    return rc;
}
