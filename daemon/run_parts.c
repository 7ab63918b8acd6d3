// The threads of the daemon, in the order in which they start: each finds what it needs.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/run_impl.h"
#include "policy/kernels/kernels.h"

int run_start_infer(struct daemon *d)
{
    const uint64_t mask = rt_mask_without(d->cpu, d->cfg.policy.threads);
    struct infer_config cfg = {
        .trigger = d->cfg.inference.trigger,
        .max_skew_ns = (ns_t)(d->cfg.inference.max_skew_ms * 1e6),
        .cpu_not = mask ? d->cpu : -1,
        .cpu_mask =
            d->cfg.policy.threads > 1 ? mask : 0, // alone it needs no place of its own
    };
    memcpy(cfg.camera_period_ns, d->loop_cfg.camera_period_ns,
           sizeof cfg.camera_period_ns);
    if (infer_start(&d->infer, &cfg, &d->first->seat, d->camera, &d->board, &d->err))
        return run_fail(d, EX_SOFTWARE);
    return 0;
}

int run_start_swap(struct daemon *d)
{
    const struct swap_source src = {
        .cfg = &d->cfg,
        .board = &d->board,
        .infer = d->infer,
        .first = d->first,
        .deadline_ns = d->loop_cfg.budget_ns[BOARD_CHUNK],
        .seated = run_seated,
        .seated_arg = d,
    };
    d->first = NULL; // swap's, from here on
    int r = swap_new(&d->swap, &src);
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text,
             "cannot set up the swapping of policies: %s", strerror(-r));
    return run_fail(d, EX_OSERR);
}

// Evidence is not worth refusing to run for, but it is worth a word.
int run_start_blackbox(struct daemon *d)
{
    char directory[CONFIG_PATH];
    const char *joint[ACTD_MAX_JOINTS], *camera[POLICY_MAX_CAMERAS];
    for (int i = 0; i < d->cfg.n_joints; i++)
        joint[i] = d->cfg.joint[i].name;
    for (int i = 0; i < d->cfg.n_cameras; i++)
        camera[i] = d->cfg.camera[i].name;
    const struct blackbox_writer_config cfg = {
        .directory = directory,
        .instance = d->cfg.instance,
        .joint = joint,
        .camera = camera,
        .keep = d->cfg.black_box.keep,
    };
    int r = config_black_box(&d->cfg, directory, sizeof directory);
    if (r == 0)
        r = blackbox_new(&d->blackbox, d->cfg.n_joints, d->cfg.n_cameras,
                         d->cfg.control.rate_hz);
    if (r == 0)
        r = blackbox_writer_start(&d->writer, d->blackbox, &cfg);
    d->loop_cfg.blackbox = d->blackbox;
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot set up the black box: %s",
             strerror(-r));
    return run_fail(d, EX_OSERR);
}

int run_start_monitor(struct daemon *d)
{
    int r = monitor_start(&d->monitor, &d->board, clock_period_ns(d->cfg.control.rate_hz),
                          d->cfg.control.priority);
    atomic_store(&d->alive_ns, clock_now_ns());
    if (r == 0)
        monitor_ping(d->monitor, &d->dog, &d->alive_ns);
    if (r == 0)
        return 0;
    snprintf(d->err.text, sizeof d->err.text, "cannot start the loop's monitor: %s",
             strerror(-r));
    return run_fail(d, EX_OSERR);
}

int run_start_loop(struct daemon *d)
{
    const struct loop_thread_config cfg = {
        .priority = d->cfg.control.priority,
        .cpu = d->cpu,
        .require_rt = d->cfg.control.require_rt,
    };
    int r = loop_new(&d->loop, &d->loop_cfg, &d->board);
    if (r == 0)
        r = loop_thread_start(&d->thread, d->loop, &cfg, d->granted);
    if (r) {
        snprintf(d->err.text, sizeof d->err.text,
                 r == -EPERM ? "real-time scheduling was not granted and "
                               "control.require_rt is set: raise "
                               "RLIMIT_RTPRIO (LimitRTPRIO= in the unit, `ulimit -r`): %s"
                             : "cannot start the loop: %s",
                 strerror(-r));
        return run_fail(d, EX_OSERR);
    }
    if (strncmp(d->granted, "SCHED_FIFO", 10) != 0 && cfg.priority > 0)
        log_line(LOG_WARN,
                 "the loop runs as %s, NOT real-time: raise RLIMIT_RTPRIO to %d or "
                 "more (LimitRTPRIO= in the unit, `ulimit -r`)",
                 d->granted, cfg.priority);
    log_line(LOG_INFO, "loop: %s, core %d, %g Hz, memory %s", d->granted, d->cpu,
             d->cfg.control.rate_hz, d->locked ? "locked" : "NOT locked");
    return 0;
}

int run_start_status(struct daemon *d)
{
    const struct status_source src = {
        .cfg = &d->cfg,
        .swap = d->swap,
        .board = &d->board,
        .bus = d->bus,
        .cameras = d->camera,
        .infer = d->infer,
        .blackbox = d->writer,
        .recorder = d->recorder,
        .scheduling = d->granted,
        .memory_locked = d->locked,
        .publisher = d->publisher,
    };
    return status_new(&d->status, &src) ? EX_OSERR : 0;
}

// Who may ask must find all that is asked.
int run_start_control(struct daemon *d)
{
    snprintf(d->blas_core, sizeof d->blas_core, "%s",
             swap_hold(d->swap)->info->blas_core);
    swap_release(d->swap);
    d->self = (struct doctor_self){.scheduling = d->granted,
                                   .memory_locked = d->locked,
                                   .loop_cpu = d->cpu,
                                   .kernels = kernels_name(d->cfg.policy.precision),
                                   .blas_core = d->blas_core};
    d->explain = (struct explain_source){.cfg = &d->cfg,
                                         .board = &d->board,
                                         .infer = d->infer,
                                         .bus = d->bus,
                                         .cameras = d->camera};
    const struct control_source src = {.cfg = &d->cfg,
                                       .board = &d->board,
                                       .status = d->status,
                                       .swap = d->swap,
                                       .recorder = d->recorder,
                                       .explain = &d->explain,
                                       .self = &d->self};
    int r = control_start(&d->control, &src, &d->err);
    if (r)
        return run_fail(d, r == -EINVAL ? EX_CONFIG : EX_UNAVAILABLE);
    if (d->cfg.metrics.listen[0] &&
        http_start(&d->http, d->cfg.metrics.listen, d->status, &d->err))
        return run_fail(d, EX_UNAVAILABLE);
    return 0;
}
