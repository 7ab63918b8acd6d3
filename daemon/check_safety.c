// What stops the arm, when, and where the evidence goes: every bound that follows from the
// configuration, as the loop will have it.
#include <math.h>

#include "daemon/check_impl.h"
#include "daemon/config_black_box.h"
#include "daemon/intake.h"

static double ms(ns_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void streams(struct check *c)
{
    static const char *const frozen[] = {"ignored", "told", "as if it were off"};
    struct loop_bounds b = loop_joint_bounds(c->loop.joints_period_ns);

    table_row(
        &c->table,
        "joint states\tdegraded after %.4g ms, hold after %.4g, stop after %.4g; %d "
        "refused in a row: stop",
        ms(b.degraded), ms(b.hold), ms(b.stop), INTAKE_BAD_IN_A_ROW);
    table_row(&c->table,
              "a jump\tmore than %g times the velocity limit and %.4g rad between two of "
              "them",
              INTAKE_SPEED, c->cfg.safety.max_jump);
    for (int i = 0; i < c->cfg.n_cameras; i++) {
        b = loop_camera_bounds(c->loop.camera_period_ns[i]);
        table_row(&c->table,
                  "camera %s\tdegraded after %.4g ms, stop after %.4g, or after %d "
                  "undecodable frames; %d times the same picture: %s",
                  c->cfg.camera[i].name, ms(b.degraded), ms(b.stop), BOARD_CORRUPT,
                  BOARD_STUCK, frozen[c->cfg.camera[i].frozen]);
    }
}

static void budgets(struct check *c)
{
    const ns_t *b = c->loop.budget_ns;

    table_row(
        &c->table,
        "deadlines\twake-up %.4g ms, tick %.4g ms, chunk %.4g ms, joint state %.4g "
        "ms: more than 10 %% of the ticks of 500 ms (2 of 10 chunks) missed is a stop",
        ms(b[BOARD_WAKEUP]), ms(b[BOARD_TICK]), ms(b[BOARD_CHUNK]), ms(b[BOARD_SENSOR]));
}

static void targets(struct check *c)
{
    const struct config_joint *j = c->cfg.joint;

    for (int i = 0; i < c->cfg.n_joints; i++)
        if (!isnan(j[i].home))
            table_row(&c->table,
                      "%s\trefused beyond %.4g .. %.4g rad; rest pose %.4g rad",
                      j[i].name, j[i].hard_min, j[i].hard_max, j[i].home);
        else
            table_row(&c->table, "%s\trefused beyond %.4g .. %.4g rad; no rest pose",
                      j[i].name, j[i].hard_min, j[i].hard_max);
}

static void recording(struct check *c)
{
    const struct config *k = &c->cfg;
    char directory[CONFIG_PATH], most[64] = "", when[96] = "";

    if (config_record_directory(k, directory, sizeof directory) != 0)
        return;
    if (k->record.mode == RECORD_OFF)
        snprintf(when, sizeof when, "off until actctl record start");
    else if (k->record.mode == RECORD_ALWAYS)
        snprintf(when, sizeof when, "always");
    else
        snprintf(when, sizeof when,
                 "%.4g s before a fault (at most %d MB of memory) to %.4g s after",
                 k->record.before_s, k->record.memory_mb, k->record.after_s);
    if (k->record.most_mb > 0)
        snprintf(most, sizeof most, ", at most %d MB of files", k->record.most_mb);
    table_row(&c->table,
              "record\t%s; %s, %s frames; a file each %d MB or %.4g min, %d MB left "
              "free%s",
              when, directory, k->record.frames ? "with" : "without",
              k->record.segment_mb, k->record.segment_minutes, k->record.keep_free_mb,
              most);
}

void check_report_safety(struct check *c)
{
    char directory[CONFIG_PATH];

    streams(c);
    table_row(&c->table, "following\thold after %d ticks beyond its bound, stop after %d",
              c->loop.following_ticks, 2 * c->loop.following_ticks);
    budgets(c);
    targets(c);
    if (config_black_box(&c->cfg, directory, sizeof directory) == 0)
        table_row(&c->table, "black box\t%s: %d files of the last 5 s", directory,
                  c->cfg.black_box.keep);
    recording(c);
    fprintf(c->out, "\nFaults\n");
    table_print(&c->table, c->out);
}
