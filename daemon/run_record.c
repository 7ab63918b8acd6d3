// The recording of the daemon: tape and recorder are there before the first message can come and
// before the first tick, so that a replay finds the beginning; they go when everybody who writes
// the tape has ended. While nothing is recorded a load per record is all that it costs.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/run_impl.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

// ---- facts -----------------------------------------------------------------------------------

static struct recorder_config configured(const struct config *cfg)
{
    static const enum recorder_mode mode[] = {RECORDER_OFF, RECORDER_ALWAYS,
                                              RECORDER_TRIGGER};
    static const enum mcap_compression compression[] = {MCAP_ZSTD, MCAP_LZ4, MCAP_NONE};

    return (struct recorder_config){
        .mode = mode[cfg->record.mode],
        .compression = compression[cfg->record.compression],
        .frames = cfg->record.frames,
        .segment_bytes = (uint64_t)cfg->record.segment_mb << 20,
        .segment_ns = (ns_t)(cfg->record.segment_minutes * 60e9),
        .keep_free_bytes = (uint64_t)cfg->record.keep_free_mb << 20,
        .most_bytes = (uint64_t)cfg->record.most_mb << 20,
        .before_ns = (ns_t)(cfg->record.before_s * 1e9),
        .after_ns = (ns_t)(cfg->record.after_s * 1e9),
        .memory_bytes = (size_t)cfg->record.memory_mb << 20,
    };
}

// As run.c tells the cameras.
static void name_sizes(const struct daemon *d, char *out, size_t size)
{
    const struct policy_info *info = d->first->info;
    size_t at = 0;

    for (int c = 0; c < d->cfg.n_cameras && at < size; c++) {
        int width = 0, height = 0;

        for (int i = 0; i < info->n_cameras; i++)
            if (d->cfg.policy.resize == POLICY_RESIZE_REFUSE &&
                d->first->binding.camera_of[i] == c) {
                width = info->camera[i].width;
                height = info->camera[i].height;
            }
        at += (size_t)(width ? snprintf(out + at, size - at, "%s%dx%d", c ? "\n" : "",
                                        width, height)
                             : snprintf(out + at, size - at, "%sany", c ? "\n" : ""));
    }
}

// ---- begin and end ---------------------------------------------------------------------------

static void also_record(void *arg, enum log_level level, const char *text)
{
    enum tape_level as = level == LOG_ERROR  ? TAPE_LEVEL_ERROR
                         : level == LOG_WARN ? TAPE_LEVEL_WARNING
                                             : TAPE_LEVEL_INFO;

    (void)tape_event(arg, clock_now_ns(), as, "actd", text);
}

static int start_recorder(struct daemon *d)
{
    char sizes[POLICY_MAX_CAMERAS * 24] = "";
    char directory[CONFIG_PATH], file[PATH_MAX];
    const char *joint[ACTD_MAX_JOINTS], *camera[POLICY_MAX_CAMERAS];
    struct recorder_config c = configured(&d->cfg);
    int r = config_record_directory(&d->cfg, directory, sizeof directory);

    if (r)
        return r;
    name_sizes(d, sizes, sizeof sizes);
    if (!realpath(d->cfg.file, file)) // what it says of relative paths must stay true
        snprintf(file, sizeof file, "%s", d->cfg.file);
    for (int i = 0; i < d->cfg.n_joints; i++)
        joint[i] = d->cfg.joint[i].name;
    for (int i = 0; i < d->cfg.n_cameras; i++)
        camera[i] = d->cfg.camera[i].name;
    c.directory = directory;
    c.cpu_not = d->cpu;
    c.facts = (struct recorder_facts){
        .version = ACTD_VERSION,
        .instance = d->cfg.instance,
        .config_file = file,
        .config_text = d->config_text,
        .kernels = d->first->info->kernels,
        .blas_core = d->first->info->blas_core,
        .precision = precision_name(d->first->info->precision),
        .policy_sha256 = d->first->info->digest,
        .weights_sha256 = d->first->info->weights_sha256,
        .joint = joint,
        .joints = d->cfg.n_joints,
        .camera = camera,
        .cameras = d->cfg.n_cameras,
        .control_hz = d->cfg.control.rate_hz,
        .rows = d->first->info->chunk_size,
        .policy_hz = d->first->side.rate_hz,
        .action_steps = d->first->info->n_action_steps,
        .ensemble_coeff = d->first->info->has_ensemble_coeff
                              ? (double)d->first->info->ensemble_coeff
                              : NAN,
        .sizes = sizes,
    };
    r = recorder_start(&d->recorder, d->tape, &c);
    if (r == 0 && d->cfg.record.mode != RECORD_OFF)
        log_line(LOG_INFO, "record: %s, in %s",
                 d->cfg.record.mode == RECORD_ALWAYS ? "always" : "around faults",
                 directory);
    return r;
}

// Evidence is not worth refusing to run for, but it is worth a word.
void run_start_record(struct daemon *d)
{
    int r = tape_new(&d->tape, NULL);

    if (r == 0)
        r = start_recorder(d);
    if (r) {
        log_line(LOG_WARN,
                 "nothing can be recorded: %s; free some memory and start actd again",
                 strerror(-r));
        tape_free(d->tape);
        d->tape = NULL;
        return;
    }
    d->board.tape = d->tape;
    log_also(also_record, d->tape);
    run_seated(d, d->first);
}

void run_seated(void *arg, const struct fitted *f)
{
    struct daemon *d = arg;
    struct tape_seat seat;

    if (!d->recorder)
        return;
    fitted_seat(f, clock_now_ns(), &seat);
    recorder_seat(d->recorder, &seat, f->sidecar ? f->sidecar : "");
}

void run_stop_record(struct daemon *d)
{
    log_also(NULL, NULL);
    if (recorder_stop(d->recorder)) {
        tape_free(d->tape);
        return;
    }
    log_line(LOG_WARN, "the end of the recording could not be written: the disk does not "
                       "answer; `actd log recover` mends the file");
}
