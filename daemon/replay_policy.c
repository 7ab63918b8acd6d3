// The policies of a recording: which they were, where they are, and one chunk by one of them.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/replay_impl.h"
#include "daemon/replay_known.h"

#define SEATS_MOST 100000

// ---- seats -----------------------------------------------------------------------------------

static struct replay_seat *seat_of(struct replay_known *k, uint32_t generation)
{
    for (int i = 0; i < k->n_seats; i++)
        if (k->seat[i].seat.generation == generation)
            return &k->seat[i];
    return NULL;
}

// Each file says them all again.
static int take_seat(struct replay_known *k, const struct mcap_message *m)
{
    struct replay_seat one, *grown;
    int rc = record_seat_read(&one.seat, &one.sidecar, m->data, m->size);

    if (rc)
        return 0; // whoever needs it will miss it
    if (seat_of(k, one.seat.generation) || k->n_seats == SEATS_MOST) {
        free(one.sidecar);
        return 0;
    }
    grown = realloc(k->seat, (size_t)(k->n_seats + 1) * sizeof *grown);
    if (!grown) {
        free(one.sidecar);
        return -ENOMEM;
    }
    k->seat = grown;
    k->seat[k->n_seats++] = one;
    return 0;
}

int replay_seats_read(struct replay_known *k)
{
    struct logbook_cursor *c;
    struct mcap_message m;
    struct mcap_error e;
    int rc = logbook_cursor_new(&c, k->book, "/policy/seat", 0, 0), got;

    if (rc)
        return rc == -ENOENT ? 0 : rc;
    for (int tries = 0; rc == 0 && (got = logbook_next(c, &m, &e)) != 0;) {
        if (got < 0 && ++tries > SEATS_MOST)
            break;
        if (got > 0)
            rc = take_seat(k, &m);
    }
    logbook_cursor_free(c);
    return rc;
}

void replay_seats_free(struct replay_known *k)
{
    for (int i = 0; i < k->n_seats; i++)
        free(k->seat[i].sidecar);
    free(k->seat);
}

// ---- loading ---------------------------------------------------------------------------------

static struct policy_options options(const struct replay_known *k, int threads)
{
    const struct config *cfg = &k->cfg;

    return (struct policy_options){
        .threads = threads,
        .resize = cfg->policy.resize,
        .stats_tag = cfg->policy.stats_tag[0] ? cfg->policy.stats_tag : NULL,
        .precision = cfg->policy.precision};
}

// In the root under its name, as LeRobot lays it out or bare.
static void directory_of(const struct replay_known *k, const struct tape_seat *s,
                         char out[CONFIG_PATH])
{
    if (!k->opt->policy_root) {
        snprintf(out, CONFIG_PATH, "%.511s", s->directory);
        return;
    }
    snprintf(out, CONFIG_PATH, "%.300s/%.127s/pretrained_model", k->opt->policy_root,
             s->name);
    if (access(out, F_OK) != 0)
        snprintf(out, CONFIG_PATH, "%.300s/%.127s", k->opt->policy_root, s->name);
}

static int other_policy(const struct tape_seat *s, const struct fitted *f,
                        struct config_error *err)
{
    if (strcmp(s->digest, f->info->digest) == 0)
        return 0;
    snprintf(
        err->text, sizeof err->text,
        "%s: another policy than the one that was recorded (digest %.12s, then %.12s): "
        "put that one there, or name its parent with --policy-root",
        f->directory, f->info->digest, s->digest);
    return -ESTALE;
}

// As fitted_load, but with the sidecar that was recorded.
static int load(struct replay_known *k, const struct replay_seat *s, struct fitted *f,
                struct config_error *err)
{
    const struct policy_options opt = options(k, s->seat.threads);
    struct policy_error e = {{0}};
    int rc;

    snprintf(f->name, sizeof f->name, "%.63s", s->seat.name);
    directory_of(k, &s->seat, f->directory);
    rc = policy_load(&f->policy, f->directory, &opt, &e);
    if (rc) {
        snprintf(err->text, sizeof err->text, "%s", e.text);
        return rc;
    }
    f->info = policy_describe(f->policy);
    f->seat.brain = infer_brain_of(f->policy);
    f->generation = f->seat.generation = s->seat.generation;
    rc = other_policy(&s->seat, f, err);
    if (rc == 0)
        rc = config_sidecar_parse(&f->side, "policy.yaml", s->sidecar, strlen(s->sidecar),
                                  err);
    return rc ? rc : fitted_fit(f, &k->cfg, true, err);
}

static struct fitted *keep(struct replay_known *k, struct fitted *f)
{
    fitted_free(k->fitted[REPLAY_LOADED - 1]);
    for (int i = REPLAY_LOADED - 1; i > 0; i--)
        k->fitted[i] = k->fitted[i - 1];
    k->fitted[0] = f;
    return f;
}

// The policy of a generation; NULL with rc and err when it can not be had.
static struct fitted *of_generation(struct replay_known *k, uint32_t generation, int *rc,
                                    struct config_error *err)
{
    const struct replay_seat *s;
    struct fitted *f;

    for (int i = 0; i < REPLAY_LOADED; i++)
        if (k->fitted[i] && k->fitted[i]->generation == generation)
            return k->fitted[i];
    s = seat_of(k, generation);
    f = calloc(1, sizeof *f);
    *rc = f ? 0 : -ENOMEM;
    if (f && !s) {
        snprintf(err->text, sizeof err->text, "the log does not say which policy %u was",
                 generation);
        *rc = -ENOENT;
    }
    if (*rc == 0)
        *rc = load(k, s, f, err);
    if (*rc == 0)
        return keep(k, f);
    fitted_free(f);
    return NULL;
}

int replay_load_instead(struct replay_known *k, struct config_error *err)
{
    const struct policy_options opt = options(k, k->cfg.policy.threads);
    char name[CONFIG_NAME];

    fitted_name(k->opt->policy_directory, name);
    return fitted_load(&k->instead, &k->cfg, k->opt->policy_directory, name, &opt, err);
}

// ---- thinking --------------------------------------------------------------------------------

// A policy that can not be had: its chunks are taken as they were recorded, which is said once.
static int go_without(struct replay_known *k, uint32_t generation, int rc,
                      const struct config_error *err)
{
    k->missing = generation;
    if (!k->note[0])
        snprintf(k->note, sizeof k->note,
                 "chunks of policy %u were taken as recorded: %.320s", generation,
                 err->text);
    if (!k->opt->strict)
        return -ENOENT;
    return rc == -ENOENT ? -ESTALE : rc;
}

static int infer(struct fitted *f, const struct policy_image *image,
                 const struct joint_sample *joints, int rows, float *row,
                 struct config_error *err)
{
    struct policy_image seen[POLICY_MAX_CAMERAS];
    const struct policy_observation obs = {.state = f->seat.state, .image = seen};
    int rc;

    for (int i = 0; i < f->info->n_cameras; i++) {
        seen[i] = image[f->binding.camera_of[i]];
        if (!seen[i].rgb)
            return -ENOENT;
    }
    binding_state(&f->binding, joints->pos, f->seat.state);
    rc = f->seat.brain.infer(f->seat.brain.self, &obs, f->seat.actions);
    if (rc) {
        snprintf(err->text, sizeof err->text, "%s",
                 f->seat.brain.why(f->seat.brain.self));
        return rc;
    }
    binding_actions(&f->binding, f->seat.actions, rows, row);
    return rows;
}

// A chunk was recorded with the rows that were computed then, no more than its horizon; here all are
// computed, of which the first have the same bits. Another configuration may look at more of them.
static int rows_of(const struct replay_known *k, const struct fitted *f,
                   const struct tape_chunk *request)
{
    int wanted = f->seat.horizon_rows;

    if (k->instead)
        return f->seat.rows;
    if (!k->opt->config_file)
        return request->rows;
    wanted = wanted < f->seat.rows ? wanted : f->seat.rows;
    wanted = wanted < k->robot.think_rows ? wanted : k->robot.think_rows;
    return wanted > request->rows ? wanted : request->rows;
}

int replay_think(void *arg, const struct tape_chunk *request,
                 const struct policy_image *image, const struct joint_sample *joints,
                 float *row, struct config_error *err)
{
    struct replay_known *k = arg;
    struct fitted *f = k->instead;
    int rc = 0;

    if (!f && k->missing == request->generation)
        return k->opt->strict ? -ESTALE : -ENOENT;
    if (!f)
        f = of_generation(k, request->generation, &rc, err);
    if (!f)
        return go_without(k, request->generation, rc, err);
    if (!k->instead && request->rows > f->seat.rows)
        return -ENOENT;
    return infer(f, image, joints, rows_of(k, f, request), row, err);
}
