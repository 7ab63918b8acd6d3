// Order of start: read, claim, load, lock, record, plumb, think, loop. Nothing moves at a start:
// the loop publishes the measured pose until somebody arms it, and a restart is always disarmed.
#include "daemon/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/joint_deviation.h"
#include "daemon/run_impl.h"
#include "daemon/ytree.h"
#include "policy/kernels/kernels.h"

int run_fail(struct daemon *d, int status)
{
    log_line(LOG_ERROR, "%s", d->err.text);
    return status;
}

static int begin(struct daemon *d)
{
    int r = process_begin(&d->signals);
    watchdog_init(&d->dog); // after what was left open has been closed
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot take signals: %s", strerror(-r));
    return run_fail(d, EX_OSERR);
}

static int read_files(struct daemon *d, const struct run_options *opt)
{
    size_t n;
    if (ytree_read(&d->config_text, &n, opt->config, &d->err) ||
        config_parse(&d->cfg, opt->config, d->config_text, n, &d->err))
        return run_fail(d, EX_CONFIG);
    if (d->cfg.control.cpu >= 0 && !rt_may_run_on(d->cfg.control.cpu)) {
        snprintf(d->err.text, sizeof d->err.text, RT_NO_CPU, d->cfg.control.cpu);
        return run_fail(d, EX_CONFIG);
    }
    if (opt->home && isnan(d->cfg.joint[0].home)) {
        snprintf(d->err.text, sizeof d->err.text,
                 "%s: --home needs a rest pose: write `home` for every joint",
                 opt->config);
        return run_fail(d, EX_CONFIG);
    }
    return 0;
}

// Before anything is loaded or recorded: of two daemons with one configuration the second is refused
// at once, and leaves nothing behind.
static int claim(struct daemon *d)
{
    if (endpoint_lock(d->cfg.runtime, &d->lock_fd, &d->err))
        return run_fail(d, EX_UNAVAILABLE);
    return 0;
}

static void warn(const char *text)
{
    log_line(LOG_WARN, "%s", text);
}

static int load_policy(struct daemon *d)
{
    d->cpu = d->cfg.control.cpu >= 0 ? d->cfg.control.cpu : rt_choose_cpu();
    const struct policy_options opt = {
        .threads = d->cfg.policy.threads,
        .cpu_mask = rt_mask_without(d->cpu, d->cfg.policy.threads),
        .resize = d->cfg.policy.resize,
        .stats_tag = d->cfg.policy.stats_tag[0] ? d->cfg.policy.stats_tag : NULL,
        .precision = d->cfg.policy.precision,
        .rows = d->cfg.chunks.horizon_rows, // the loop looks at no more
    };
    char name[CONFIG_NAME];
    fitted_name(d->cfg.policy.directory, name);
    int r = fitted_load(&d->first, &d->cfg, d->cfg.policy.directory, name, &opt, &d->err);
    if (r)
        return run_fail(d, r == -ENOMEM ? EX_OSERR : EX_CONFIG);
    const struct fitted *f = d->first;
    d->first->generation = d->first->seat.generation = 1;
    if (config_loop(&d->cfg, &f->side, f->info, &d->loop_cfg, &d->err))
        return run_fail(d, EX_CONFIG);
    log_line(LOG_INFO,
             "policy %s: %s, %s; cameras: %d; chunk: %d rows at %g Hz; threads: %d; "
             "kernels: %s%s%s (%s); "
             "digest %s",
             f->directory, f->info->type, f->info->format, f->info->n_cameras,
             f->info->chunk_size, f->side.rate_hz, f->info->threads, f->info->kernels,
             *f->info->blas_core ? " " : "", f->info->blas_core, kernels_why(),
             f->info->digest);
    char text[300];
    log_line(
        LOG_INFO, "policy precision %s",
        joint_deviation_text(&d->cfg, &f->side, &f->binding, f->info, text, sizeof text));
    (void)check_warnings(&d->cfg, &f->side, f->info, &f->binding, warn);
    return 0;
}

static int lock_memory(struct daemon *d)
{
    d->awake = rt_stay_awake(); // where it is not ours to ask, wake-ups are a bit later
    if (!d->cfg.control.lock_memory)
        return 0;
    int r = rt_lock_memory();
    d->locked = r == 0;
    if (r == 0)
        return 0;
    snprintf(
        d->err.text, sizeof d->err.text,
        "memory cannot be locked (%s): raise RLIMIT_MEMLOCK (LimitMEMLOCK= in the unit, "
        "`ulimit -l`), or set control.lock_memory: false",
        strerror(-r));
    if (d->cfg.control.require_rt)
        return run_fail(d, EX_OSERR);
    log_line(LOG_WARN, "%s", d->err.text);
    return 0;
}

static int plumb(struct daemon *d)
{
    const struct policy_info *info = d->first->info;
    int r = board_init(&d->board, d->cfg.n_cameras, info->chunk_size, d->cfg.n_joints);
    d->board_ready = r == 0;
    if (r == 0 && explain_latch_init(&d->latch) == 0)
        d->board.latch = &d->latch;
    for (int i = 0; i < d->cfg.n_cameras && r == 0; i++)
        r = camera_start(&d->camera[i], d->cfg.camera[i].name, &d->board.camera[i],
                         d->cfg.camera[i].latency_ms);
    for (int i = 0; i < info->n_cameras && r == 0; i++)
        if (d->cfg.policy.resize == POLICY_RESIZE_REFUSE)
            camera_expect(d->camera[d->first->binding.camera_of[i]],
                          info->camera[i].width, info->camera[i].height);
    if (r) {
        snprintf(d->err.text, sizeof d->err.text, "cannot set up the streams: %s",
                 strerror(-r));
        return run_fail(d, EX_OSERR);
    }
    run_start_record(d);
    int priority = d->cfg.control.priority > 1 ? d->cfg.control.priority - 1 : 0;
    int lock_fd = d->lock_fd;
    d->lock_fd = -1;
    if (bus_start(&d->bus, &d->cfg, &d->board, d->camera, priority, lock_fd, &d->err))
        return run_fail(d, EX_UNAVAILABLE);
    d->publisher =
        bus_publisher(d->bus, d->cfg.status.endpoint, d->cfg.status.bind, &d->err);
    return d->publisher ? 0 : run_fail(d, EX_UNAVAILABLE);
}

static int start(struct daemon *d, const struct run_options *opt)
{
    int r = begin(d);
    if (r == 0)
        r = read_files(d, opt);
    if (r == 0)
        r = claim(d);
    if (r == 0)
        r = load_policy(d);
    if (r == 0)
        r = lock_memory(d);
    if (r == 0)
        r = plumb(d);
    if (r == 0)
        r = run_start_infer(d);
    if (r == 0)
        r = run_start_blackbox(d);
    if (r == 0)
        r = run_start_loop(d);
    if (r == 0)
        r = run_start_monitor(d);
    if (r == 0)
        r = run_start_swap(d); // after the last that is built for the first policy
    if (r == 0)
        r = run_start_status(d);
    if (r == 0)
        r = run_start_control(d);
    return r;
}

static void stop(struct daemon *d)
{
    http_stop(d->http);
    control_stop(d->control);
    swap_stop(d->swap); // while the worker can still let go of a candidate
    monitor_stop(d->monitor);
    loop_thread_stop(d->thread);
    if (d->status)
        status_summary(d->status); // looks at the infer thread's counters
    status_free(d->status);
    blackbox_writer_stop(d->writer);
    infer_stop(d->infer);
    swap_free(d->swap);
    fitted_free(d->first);
    if (d->publisher)
        bus_close(d->publisher);
    bus_stop(d->bus);
    run_stop_record(d); // bus, worker, loop and all who say lines have ended
    loop_free(d->loop);
    blackbox_free(d->blackbox);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        camera_stop(d->camera[i]);
    if (d->board.latch)
        explain_latch_free(d->board.latch);
    if (d->board_ready)
        board_free(&d->board);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    if (d->signals >= 0)
        close(d->signals);
    if (d->awake >= 0)
        close(d->awake);
    free(d->config_text);
}

static int watch(struct daemon *d, const struct run_options *opt)
{
    const struct watch_source src = {
        .cfg = &d->cfg,
        .limits = &d->loop_cfg.limits,
        .swap = d->swap,
        .board = &d->board,
        .infer = d->infer,
        .status = d->status,
        .bus = d->bus,
        .cameras = d->camera,
        .monitor = d->monitor,
        .dog = &d->dog,
        .alive_ns = &d->alive_ns,
        .blackbox = d->blackbox,
        .recorder = d->recorder,
        .signals = d->signals,
        .arm = opt->arm,
        .home = opt->home,
        .seconds = opt->seconds,
    };
    return watch_run(&src);
}

int run(const struct run_options *opt)
{
    struct daemon *d = calloc(1, sizeof *d);
    if (!d)
        return EX_OSERR;
    d->signals = d->awake = d->lock_fd = -1;
    log_init();
    d->dog.fd = -1;
    int r;
    if ((opt->arm || opt->home) && watch_under_manager()) {
        log_line(
            LOG_ERROR,
            "--arm and --home are refused under a service manager: a restart must come "
            "back disarmed");
        r = EX_USAGE;
    } else {
        r = start(d, opt);
    }
    if (r == 0) {
        atomic_store(&d->board.started, true);
        r = watch(d, opt);
    }
    stop(d);
    watchdog_end(&d->dog);
    free(d);
    return r;
}
