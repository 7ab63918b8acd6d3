// fitted: see the header. A candidate may leave cameras of the robot unused (whether that
// is wanted is for swap_judge.c to say): it is bound to a robot without them, and then
// told where the others are in the real one.
#include "daemon/fitted.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_loop.h"
#include "daemon/joint_deviation.h"
#include "daemon/ytree.h"
#include "policy/place.h"

// ---- the sidecar -----------------------------------------------------------------------------

static int read_whole(int fd, char *buf, size_t size, size_t *n)
{
    for (*n = 0; *n < size;) {
        ssize_t got = read(fd, buf + *n, size - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return 0;
}

// policy.yaml by the rules for files that an operator names while the arm moves.
static int load_strictly(struct fitted *out, const char *directory, const char *name,
                         struct config_error *err)
{
    const struct place place = {.dir = directory, .shown = name, .strict = true};
    const size_t size = YTREE_MAX_BYTES + 1; // one more, so that too much is seen as that
    struct policy_error e = {{0}};
    struct place_file f;
    size_t n = 0;
    int rc = place_open(&f, &place, "policy.yaml", &e);
    if (rc == -ENOENT)
        snprintf(err->text, sizeof err->text,
                 "%s/policy.yaml: not there; `actd init` on that directory writes it "
                 "(joint names, rate and units, which a checkpoint does not carry)",
                 name);
    else if (rc)
        snprintf(err->text, sizeof err->text, "%s", e.text);
    if (rc)
        return rc;
    out->sidecar = calloc(1, size + 1);
    rc = out->sidecar ? read_whole(f.fd, out->sidecar, size, &n) : -ENOMEM;
    if (rc)
        snprintf(err->text, sizeof err->text, "%s: cannot be read: %s", f.shown,
                 strerror(-rc));
    else
        rc = config_sidecar_parse(&out->side, f.shown, out->sidecar, n, err);
    close(f.fd);
    return rc;
}

static int load_plainly(struct fitted *out, const char *directory,
                        struct config_error *err)
{
    char shown[CONFIG_PATH + 16];
    size_t n;
    int rc = config_sidecar_read(&out->sidecar, &n, directory, err);
    snprintf(shown, sizeof shown, "%.511s/policy.yaml", directory);
    return rc ? rc : config_sidecar_parse(&out->side, shown, out->sidecar, n, err);
}

// ---- binding ---------------------------------------------------------------------------------

static bool looks_at(const struct policy_info *info, const char *key)
{
    for (int i = 0; i < info->n_cameras; i++)
        if (strcmp(info->camera[i].key, key) == 0)
            return true;
    return false;
}

// The robot without the cameras that the policy does not look at; was[i] is where camera
// i of it is in the real one. The anchor then comes from the first that is left.
static int without_cameras(struct config *cfg, const struct policy_info *info, int *was)
{
    bool primary = false;
    int n = 0;
    for (int i = 0; i < cfg->n_cameras; i++) {
        if (!looks_at(info, cfg->camera[i].key))
            continue;
        primary |= cfg->camera[i].primary;
        cfg->camera[n] = cfg->camera[i];
        was[n++] = i;
    }
    cfg->n_cameras = n;
    if (n > 0 && !primary)
        cfg->camera[0].primary = true;
    return n;
}

static int bind_some(struct fitted *f, const struct config *cfg, struct config_error *err)
{
    int was[POLICY_MAX_CAMERAS] = {0};
    struct config *some = malloc(sizeof *some);
    if (!some)
        return -ENOMEM;
    *some = *cfg;
    int n = without_cameras(some, f->info, was);
    int rc = binding_make(&f->binding, some, &f->side, f->info, err);
    for (int i = 0; i < f->info->n_cameras && rc == 0; i++)
        f->binding.camera_of[i] = was[f->binding.camera_of[i]];
    if (rc == 0 && n > 0)
        f->binding.primary = was[f->binding.primary];
    free(some);
    return rc;
}

int fitted_fit(struct fitted *f, const struct config *cfg, bool candidate,
               struct config_error *err)
{
    struct loop_config *loop = malloc(sizeof *loop);
    int rc = loop ? 0 : -ENOMEM;
    if (rc == 0)
        rc = candidate ? bind_some(f, cfg, err)
                       : binding_make(&f->binding, cfg, &f->side, f->info, err);
    if (rc == 0)
        rc = config_loop(cfg, &f->side, f->info, loop, err);
    if (rc == 0) {
        f->deadline_ns = loop->budget_ns[BOARD_CHUNK];
        f->seat.info = f->info;
        f->seat.binding = &f->binding;
        f->seat.step_ns = loop->chunks.step_ns;
        f->seat.horizon_rows = loop->chunks.rows;
        f->seat.every_rows = config_every_rows(cfg, f->info);
        rc = infer_seat_init(&f->seat);
    }
    if (rc == -ENOMEM)
        snprintf(err->text, sizeof err->text, "%s: out of memory", f->name);
    free(loop);
    return rc;
}

// ---- load and free ---------------------------------------------------------------------------

static int load(struct fitted *f, const struct config *cfg,
                const struct policy_options *opt, struct config_error *err)
{
    struct policy_error e = {{0}};
    int rc = opt->strict_files ? load_strictly(f, f->directory, f->name, err)
                               : load_plainly(f, f->directory, err);
    if (rc)
        return rc;
    rc = policy_load(&f->policy, f->directory, opt, &e);
    if (rc) {
        snprintf(err->text, sizeof err->text, "%s", e.text);
        return rc;
    }
    f->info = policy_describe(f->policy);
    f->seat.brain = infer_brain_of(f->policy);
    rc = fitted_fit(f, cfg, opt->beside != NULL, err);
    return rc ? rc : joint_deviation_check(cfg, &f->side, &f->binding, f->info, err);
}

int fitted_load(struct fitted **out, const struct config *cfg, const char *directory,
                const char *name, const struct policy_options *opt,
                struct config_error *err)
{
    struct fitted *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) {
        snprintf(err->text, sizeof err->text, "%s: out of memory", name);
        return -ENOMEM;
    }
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->directory, sizeof f->directory, "%s", directory);
    int rc = load(f, cfg, opt, err);
    if (rc) {
        fitted_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

void fitted_free(struct fitted *f)
{
    if (!f)
        return;
    infer_seat_free(&f->seat);
    policy_free(f->policy);
    free(f->sidecar);
    free(f);
}

void fitted_seat(const struct fitted *f, ns_t since_ns, struct tape_seat *out)
{
    const struct policy_info *i = f->info;
    *out = (struct tape_seat){
        .generation = f->generation, .threads = i->threads, .since_ns = since_ns};
    snprintf(out->name, sizeof out->name, "%s", f->name);
    snprintf(out->directory, sizeof out->directory, "%s", f->directory);
    snprintf(out->digest, sizeof out->digest, "%s", i->digest);
    snprintf(out->config_sha256, sizeof out->config_sha256, "%s", i->config_sha256);
    snprintf(out->weights_sha256, sizeof out->weights_sha256, "%s", i->weights_sha256);
    snprintf(out->statistics_sha256, sizeof out->statistics_sha256, "%s",
             i->statistics_sha256);
}

void fitted_name(const char *directory, char name[CONFIG_NAME])
{
    static const char inner[] = "pretrained_model";
    size_t end = strlen(directory), from;
    for (int level = 0; level < 2; level++) {
        while (end > 1 && directory[end - 1] == '/')
            end--;
        for (from = end; from > 0 && directory[from - 1] != '/';)
            from--;
        if (level == 1 || end - from != sizeof inner - 1 || from == 0 ||
            memcmp(directory + from, inner, end - from) != 0)
            break;
        end = from;
    }
    snprintf(name, CONFIG_NAME, "%.*s", (int)(end - from), directory + from);
}
