// swap_load: from a name to a candidate that may be tried. Everything that takes its
// time.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/joint_deviation.h"
#include "daemon/log.h"
#include "daemon/swap_impl.h"

#define GUESS_LEAST (20 * NS_PER_MS)

// ---- loading ---------------------------------------------------------------------------------

static void log_precision(const struct config *cfg, const struct fitted *f)
{
    char text[300];
    if (f->info->precision != PRECISION_FLOAT32)
        log_line(
            LOG_INFO, "policy %s: precision %s", f->name,
            joint_deviation_text(cfg, &f->side, &f->binding, f->info, text, sizeof text));
}

static int load_by_name(struct swap *s, struct fitted **out, struct config_error *err)
{
    const struct config *cfg = s->src.cfg;
    const char *name = s->job.request.name;
    const struct policy_options opt = {
        .resize = cfg->policy.resize,
        .stats_tag = cfg->policy.stats_tag[0] ? cfg->policy.stats_tag : NULL,
        .precision = cfg->policy.precision,
        .rows = cfg->chunks.horizon_rows,
        .beside = s->current->policy,
        .strict_files = true,
        .name = name,
        .cancel = &s->cancel,
    };
    char path[CONFIG_PATH], through[32];
    int fd = swap_open(cfg, name, path, err), rc;
    if (fd < 0)
        return fd;
    snprintf(through, sizeof through, "/proc/self/fd/%d", fd);
    rc = fitted_load(out, cfg, through, name, &opt, err);
    if (rc == 0) {
        memcpy((*out)->directory, path, sizeof path);
        log_precision(cfg, *out);
    }
    close(fd);
    return rc;
}

int swap_load(struct swap *s, struct config_error *err)
{
    struct swap_job *j = &s->job;
    if (j->request.back) {
        j->candidate = s->previous;
        return 0;
    }
    if (s->src.load)
        return s->src.load(s->src.load_arg, j->request.name, &s->cancel, &j->candidate,
                           err);
    return load_by_name(s, &j->candidate, err);
}

// ---- what it is ------------------------------------------------------------------------------

// Rows that a chunk may have in the ring to the loop.
static int room(const struct swap *s)
{
    int rows = 0;
    while (chunk_bytes(rows + 1, s->src.cfg->n_joints) <= s->src.board->chunks.size)
        rows++;
    return rows;
}

static int make_room(struct swap *s, struct config_error *err)
{
    struct swap_job *j = &s->job;
    size_t n = (size_t)s->src.cfg->n_joints;
    j->running = calloc((size_t)s->current->seat.rows * n, sizeof *j->running);
    j->tried = calloc((size_t)j->candidate->seat.rows * n, sizeof *j->tried);
    if (j->running && j->tried)
        return 0;
    snprintf(err->text, sizeof err->text, "out of memory");
    return -ENOMEM;
}

int swap_check(struct swap *s, struct config_error *err)
{
    struct swap_job *j = &s->job;
    struct infer_seat *seat = &j->candidate->seat;
    int rows = seat->rows, most = room(s);
    if (!swap_equal(s->src.cfg, s->current, j->candidate, j->request.allow, err->text,
                    sizeof err->text))
        return -EINVAL;
    if (rows > most) {
        snprintf(err->text, sizeof err->text,
                 "its chunk has %d rows and there is room for %d, as many as the first "
                 "policy's has: start actd with it as policy.directory",
                 rows, most);
        return -E2BIG;
    }
    // The loop executes no more of a chunk than it was started for.
    seat->horizon_rows = seat->horizon_rows < s->rows ? seat->horizon_rows : s->rows;
    seat->every_rows =
        seat->every_rows < seat->horizon_rows ? seat->every_rows : seat->horizon_rows;
    return make_room(s, err);
}

// The running policy's time, by how much more memory the candidate goes through.
ns_t swap_guess_ns(const struct swap *s)
{
    const struct policy_info *a = s->current->info, *b = s->job.candidate->info;
    double was = (double)(a->weight_bytes + a->table_bytes + a->activation_bytes);
    double is = (double)(b->weight_bytes + b->table_bytes + b->activation_bytes);
    ns_t ns = infer_recent_ns(s->src.infer);
    ns = ns > GUESS_LEAST ? ns : GUESS_LEAST;
    return was > 0 && is > was ? (ns_t)((double)ns * is / was) : ns;
}
