// Swaps in virtual time: scripted policies, the real worker's steps, a loop that only
// takes chunks. See swap_rig.h for what is checked of every chunk.
#include "tests/unit/swap_rig.h"

#include <sys/stat.h>

#include "daemon/log.h"
#include "daemon/swap_impl.h"

#define PATIENCE (3 * NS_PER_S) // swap_job.c's

static char logged[4096]; // newest lines
static int lines;

void log_line(enum log_level level, const char *format, ...)
{
    va_list ap;
    (void)level;
    va_start(ap, format);
    vsnprintf(logged, sizeof logged, format, ap);
    va_end(ap);
    lines++;
}

static char seats[256]; // who took the seat, "name:generation " each
static void seated(void *arg, const struct fitted *f)
{
    size_t n = strlen(seats);
    (void)arg;
    snprintf(seats + n, sizeof seats - n, "%s:%u ", f->name, f->generation);
}

// ---- helpers ---------------------------------------------------------------------------------

static int setup(void **state)
{
    int rc = rig_setup(state);
    struct rig *r = *state;
    const struct swap_source src = {.cfg = r->cfg,
                                    .board = &r->board,
                                    .infer = r->infer,
                                    .first = &r->script[0].fitted,
                                    .deadline_ns = ROWS * STEP,
                                    .load = rig_load,
                                    .unload = rig_unload,
                                    .load_arg = r,
                                    .seated = seated,
                                    .by_hand = true};
    if (rc == 0)
        rc = swap_new(&r->swap, &src);
    logged[0] = seats[0] = '\0';
    lines = 0;
    r->report.mode = LADDER_RUNNING;
    rig_run(r, NS_PER_S); // its chunks come
    r->least = ROWS;
    return rc;
}

static uint64_t begin(struct rig *r, const char *name, bool force, unsigned allow)
{
    struct swap_request q = {.force = force, .allow = allow, .uid = 1000, .pid = 77};
    char why[512];
    uint64_t number = 0;
    if (name)
        snprintf(q.name, sizeof q.name, "%s", name);
    q.back = !name;
    if (swap_begin(r->swap, &q, &number, why, sizeof why))
        fail_msg("%s", why);
    return number;
}

static int refused(struct rig *r, const char *name, const char *part)
{
    struct swap_request q = {.back = !name};
    char why[512];
    uint64_t number;
    if (name)
        snprintf(q.name, sizeof q.name, "%s", name);
    int rc = swap_begin(r->swap, &q, &number, why, sizeof why);
    if (rc == 0 || !strstr(why, part))
        fail_msg("%d %s", rc, why);
    return rc;
}

static struct swap_report look(struct rig *r, uint64_t number)
{
    struct swap_report out;
    assert_true(swap_look(r->swap, number, &out));
    return out;
}

static bool busy(struct rig *r)
{
    return r->swap->busy; // by hand there is nobody else
}

// Until it is decided and put away.
static struct swap_report finish(struct rig *r, uint64_t number)
{
    for (int i = 0; i < 20000 && look(r, number).stage < SWAP_DONE; i++)
        rig_ms(r);
    for (int i = 0; i < 40 && busy(r); i++)
        rig_ms(r);
    return look(r, number);
}

static struct swap_report swap(struct rig *r, const char *name, bool force,
                               unsigned allow)
{
    return finish(r, begin(r, name, force, allow));
}

static void until_stage(struct rig *r, uint64_t number, enum swap_stage stage)
{
    for (int i = 0; i < 20000 && look(r, number).stage < stage; i++)
        rig_ms(r);
    assert_int_equal(look(r, number).stage, stage);
}

static struct swap_policy policy(struct rig *r)
{
    struct swap_policy p;
    swap_policy_status(r->swap, &p);
    return p;
}

// It failed, says why, and the first policy goes on as if nothing had been.
static void untouched(struct rig *r, struct swap_report out, int rc, const char *part)
{
    assert_int_equal(out.stage, SWAP_FAILED);
    assert_int_equal(out.result, rc);
    if (!strstr(out.text, part))
        fail_msg("'%s' is not in: %s", part, out.text);
    assert_non_null(strstr(logged, out.text));
    assert_int_equal(lines, 1);
    assert_string_equal(policy(r).name, "first");
    assert_int_equal(policy(r).generation, 1);
    assert_int_equal(policy(r).swaps, 0);
    assert_int_equal(policy(r).swaps_failed, 1);
    assert_string_equal(policy(r).swapping_to, "");
    assert_int_equal(r->report.generation, 1);
    assert_string_equal(seats, "");
    assert_int_equal(r->frees, r->loads - (r->load_rc != 0));
    uint64_t before = r->chunks[1];
    rig_run(r, NS_PER_S);
    assert_in_range(r->chunks[1] - before, 4, 6);
    assert_true(r->least > 0);
}

// ---- it goes through -------------------------------------------------------------------------

static void drives_and_tells(void **state)
{
    struct rig *r = *state;
    r->next.offset = 0.1;
    r->next.slope = 0.001;
    r->next.takes = 20 * MS;
    uint64_t n = begin(r, "second", false, 0);
    assert_int_equal(n, 1);
    assert_string_equal(policy(r).swapping_to, "second");
    struct swap_report out = finish(r, n);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_int_equal(out.result, 0);
    assert_string_equal(out.from, "first");
    assert_string_equal(out.to, "second");
    assert_string_equal(out.from_digest, "digest-of-first");
    assert_string_equal(out.to_digest, "digest-of-second");
    assert_int_equal(out.trials, 5);
    assert_int_equal(out.inference_median_ns, 20 * MS);
    assert_int_equal(out.inference_worst_ns, 20 * MS);
    assert_int_equal(out.deadline_ns, ROWS * STEP);
    assert_true(fabs(out.difference_rad - (0.1 + 0.049)) < 1e-6);
    assert_int_equal(out.difference_row, 49);
    assert_true(out.bound_rad == 0.3 && out.golden_error == -1);
    // One inference of the running policy's at most, five trials; then a frame, an
    // inference.
    assert_in_range(out.trial_ns, 5 * 20 * MS, 450 * MS);
    assert_in_range(out.commit_ns, 20 * MS, PERIOD + 20 * MS + 2 * TICK);
    assert_in_range(out.total_ns, out.trial_ns + out.commit_ns,
                    out.trial_ns + out.commit_ns + 10 * MS);
    assert_int_equal(out.tick, r->report.generation_tick);
    assert_non_null(strstr(out.text, "second drives after "));
    struct swap_policy p = policy(r);
    assert_string_equal(p.name, "second");
    assert_string_equal(p.previous, "first");
    assert_string_equal(p.digest, "digest-of-second");
    assert_string_equal(p.type, "script");
    assert_int_equal(p.generation, 2);
    assert_int_equal(p.since_tick, out.tick);
    assert_int_equal(p.swaps, 1);
    assert_int_equal(p.swaps_failed, 0);
    assert_string_equal(p.swapping_to, "");
    assert_int_equal(lines, 1);
    assert_non_null(strstr(logged, "digest-of-first"));
    assert_non_null(strstr(logged, "digest-of-second"));
    assert_non_null(strstr(logged, "uid 1000 (pid 77)"));
    assert_string_equal(seats, "second:2 ");
    assert_int_equal(r->frees, 0); // kept for the way back
    assert_int_equal(r->report.generation, 2);
    assert_true(r->least > 0);
}

static void takes_its_time(struct rig *r)
{
    (void)r;
    clock_sleep_until(clock_now_ns() + 5 * MS);
}

// In the thread's own time: loading is the one step that lasts.
static void tells_how_long_at_every_stage(void **state)
{
    struct rig *r = *state;
    r->while_loading = takes_its_time;
    r->swap->src.by_hand = false;
    uint64_t n = begin(r, "second", false, 0);
    (void)swap_job_turn(r->swap, clock_now_ns());
    struct swap_report out = look(r, n);
    assert_int_equal(out.stage, SWAP_TRYING);
    assert_true(out.load_ns >= 5 * MS && out.total_ns == out.load_ns);
    r->swap->src.by_hand = true;
    r->swap->job.begin_ns = r->swap->job.stage_ns = r->swap->job.progress_ns = r->now;
    until_stage(r, n, SWAP_COMMITTING);
    out = look(r, n);
    assert_true(out.trial_ns > 0 && out.total_ns >= out.trial_ns);
    struct swap_report end = finish(r, n);
    assert_int_equal(end.stage, SWAP_DONE);
    assert_int_equal(end.total_ns, out.total_ns + end.commit_ns);
}

// From each millisecond of two of the running policy's periods: it always drives, and the
// arm is never without a chunk. Both ways, again and again.
static void at_any_point_of_an_inference(void **state)
{
    struct rig *r = *state;
    for (int ms = 0; ms < 2 * EVERY * (int)(STEP / MS); ms++) {
        rig_run(r, ms * MS);
        struct swap_report out = swap(r, ms ? NULL : "second", false, 0);
        if (out.stage != SWAP_DONE)
            fail_msg("at %d ms: %s", ms, out.text);
    }
    assert_int_equal(r->loads, 1);
    assert_int_equal(r->frees, 0);
    // The worst is as without any swap: an inference, a frame and a poll after the
    // trigger.
    assert_true(r->least > ROWS - EVERY - 1 - 8);
}

// As little as the slack rule leaves: a candidate that takes half a chunk.
static void a_slow_candidate_does_not_starve_the_arm(void **state)
{
    struct rig *r = *state;
    r->next.takes = 500 * MS;
    struct swap_report out = swap(r, "second", false, 0);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_int_equal(out.inference_worst_ns, 500 * MS);
    assert_true(r->least > 0);
}

static void back_needs_no_load_and_frees_what_is_superseded(void **state)
{
    struct rig *r = *state;
    assert_int_equal(refused(r, NULL, "none was swapped"), -ENOENT);
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
    struct swap_report out = swap(r, NULL, false, 0);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_string_equal(out.to, "first");
    assert_int_equal(out.trials, 5); // tried again, and compared
    assert_int_equal(r->loads, 1);
    assert_int_equal(r->frees, 0);
    assert_string_equal(policy(r).name, "first");
    assert_string_equal(policy(r).previous, "second");
    assert_int_equal(policy(r).generation, 3);
    assert_int_equal(swap(r, "third", false, 0).stage, SWAP_DONE);
    assert_int_equal(r->frees, 1);
    assert_true(r->script[1].freed); // second
    assert_string_equal(policy(r).previous, "first");
    r->load_rc = -EINVAL; // a failure leaves the way back as it was
    assert_int_equal(swap(r, "fourth", false, 0).stage, SWAP_FAILED);
    assert_string_equal(policy(r).previous, "first");
    assert_int_equal(swap(r, NULL, false, 0).stage, SWAP_DONE);
    assert_string_equal(policy(r).name, "first");
    assert_int_equal(r->frees, 1);
    r->script[2].rc = -EDOM; // third: no way back now, but later perhaps
    assert_int_equal(swap(r, NULL, false, 0).stage, SWAP_FAILED);
    assert_string_equal(policy(r).previous, "third");
    r->script[2].rc = 0;
    assert_int_equal(swap(r, NULL, false, 0).stage, SWAP_DONE);
    assert_string_equal(policy(r).name, "third");
    assert_int_equal(r->frees, 1);
}

static void is_not_freed_while_held(void **state)
{
    struct rig *r = *state;
    const struct fitted *held = swap_hold(r->swap);
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
    uint64_t n = begin(r, "third", false, 0);
    assert_int_equal(finish(r, n).stage, SWAP_DONE);
    rig_run(r, NS_PER_S);
    assert_int_equal(r->frees, 0);
    assert_string_equal(held->name, "first");
    assert_true(busy(r)); // it has not been put away
    swap_release(r->swap);
    rig_run(r, 4 * MS);
    assert_int_equal(r->frees, 1);
    assert_false(busy(r));
}

static void another_rate_and_another_chunk(void **state)
{
    struct rig *r = *state;
    r->next.fitted.side.rate_hz = 25; // rows of 40 ms
    r->next.info.chunk_size = 20;
    r->next.slope = 0.002; // so that in time it is as steep as the first
    r->script[0].slope = 0.001;
    rig_run(r, 300 * MS);
    struct swap_report out = swap(r, "second", false, 0);
    untouched(r, out, -EINVAL, "trained at 25 Hz and the running policy at 50 Hz");
    lines = 0;
    out = swap(r, "second", false, SWAP_ALLOW_RATE | SWAP_ALLOW_CHUNK);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_true(out.difference_rad < 1e-6); // aligned by time
    assert_int_equal(out.deadline_ns, 20 * 40 * MS);
    const struct infer_seat *seat = infer_seated(r->infer);
    assert_int_equal(seat->step_ns, 40 * MS);
    assert_int_equal(seat->horizon_rows, 20);
    assert_int_equal(seat->every_rows, EVERY);
    rig_run(r, NS_PER_S); // its chunks: see rig_check_chunk
    assert_true(r->chunks[2] >= 2 && r->least > 0);
}

static void more_rows_than_the_loop_executes(void **state)
{
    struct rig *r = *state;
    r->next.info.chunk_size = MAX_ROWS;
    assert_int_equal(swap(r, "second", false, SWAP_ALLOW_CHUNK).stage, SWAP_DONE);
    assert_int_equal(infer_seated(r->infer)->horizon_rows, ROWS);
    r->next.info.chunk_size = MAX_ROWS + 1;
    struct swap_report out = swap(r, "third", false, SWAP_ALLOW_CHUNK);
    assert_int_equal(out.result, -E2BIG);
    assert_non_null(strstr(out.text, "65 rows and there is room for 64"));
}

// The candidate sees with one camera; the way back leads to one that needs both.
static void fewer_cameras_and_back(void **state)
{
    struct rig *r = *state;
    r->next.info.n_cameras = 1;
    r->next.info.camera[0] = (struct policy_camera){"wrist", SIDE, SIDE};
    struct swap_report out = swap(r, "second", false, 0);
    untouched(r, out, -EINVAL, "does not look at 'front'");
    lines = 0;
    out = swap(r, "second", false, SWAP_ALLOW_CAMERAS);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_int_equal(r->script[1].grey[0], 41); // the wrist's picture
    assert_int_equal(infer_seated(r->infer)->binding->primary, 1);
    r->grey = 90;
    rig_run(r, NS_PER_S);
    assert_int_equal(swap(r, NULL, false, SWAP_ALLOW_CAMERAS).stage, SWAP_DONE);
    assert_int_equal(r->script[0].grey[0], 90);
    assert_int_equal(r->script[0].grey[1], 91);
}

// ---- it does not begin -----------------------------------------------------------------------

static void one_at_a_time(void **state)
{
    struct rig *r = *state;
    uint64_t n = begin(r, "second", false, 0);
    assert_int_equal(refused(r, "third", "to second, is under way"), -EBUSY);
    until_stage(r, n, SWAP_TRYING);
    assert_int_equal(refused(r, "third", "to second, is under way"), -EBUSY);
    until_stage(r, n, SWAP_COMMITTING);
    assert_int_equal(refused(r, NULL, "to second, is under way"), -EBUSY);
    assert_int_equal(finish(r, n).stage, SWAP_DONE);
    assert_int_equal(begin(r, "third", false, 0), 2);
}

static void names_that_cannot_be(void **state)
{
    struct rig *r = *state;
    static const char *const bad[] = {"",     ".",    "..",  ".hidden", "a/b",
                                      "/etc", "a\nb", "a b", "a\x7f",   "../first"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(refused(r, bad[i], "no name of a policy"), -EINVAL);
    assert_int_equal(r->loads, 0);
}

static void forgets_old_reports(void **state)
{
    struct rig *r = *state;
    struct swap_report out;
    assert_false(swap_look(r->swap, 0, &out));
    assert_false(swap_look(r->swap, 1, &out));
    r->load_rc = -EINVAL;
    for (int i = 0; i < 9; i++)
        (void)swap(r, "second", false, 0);
    assert_false(swap_look(r->swap, 1, &out));
    assert_true(swap_look(r->swap, 2, &out) && out.number == 2);
    assert_true(swap_look(r->swap, 9, &out) && out.number == 9);
}

// ---- it fails --------------------------------------------------------------------------------

static void the_loader_says_no(void **state)
{
    struct rig *r = *state;
    r->load_rc = -EINVAL;
    untouched(r, swap(r, "second", true, ~0u), -EINVAL, "tensor model.x is missing");
}

static void make_checkpoint(const char *directory, const char *name)
{
    static const char *const file[] = {"config.json", "policy.yaml", "model.safetensors"};
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    assert_int_equal(mkdir(path, 0755), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", directory, name, file[i]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(file[i], f);
        fclose(f);
    }
}

static void the_list_says_what_was_refused(void **state)
{
    struct rig *r = *state;
    struct swap_entry e[4];
    char directory[] = "/tmp/actd-swap.XXXXXX", command[64];
    (void)umask(022);
    assert_non_null(mkdtemp(directory));
    snprintf(r->cfg->swap.directory, CONFIG_PATH, "%s", directory);
    make_checkpoint(directory, "other");
    make_checkpoint(directory, "second");
    r->load_rc = -EINVAL;
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_FAILED);
    assert_int_equal(swap_list(r->swap, e, 4), 3); // first is from elsewhere
    assert_string_equal(e[1].name, "other");
    assert_string_equal(e[1].note, "");
    assert_string_equal(e[2].name, "second");
    assert_true(e[2].usable); // as far as one sees from outside
    assert_non_null(strstr(e[2].note, ": tensor model.x is missing"));
    r->load_rc = 0;
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
    assert_int_equal(swap_list(r->swap, e, 4), 4);
    assert_string_equal(e[3].note, "");
    snprintf(command, sizeof command, "rm -rf %s", directory);
    assert_int_equal(system(command), 0);
}

static void a_trial_fails(void **state)
{
    struct rig *r = *state;
    r->next.rc = -EDOM;
    r->next.fails_from = 3;
    struct swap_report out = swap(r, "second", true, 0);
    assert_int_equal(out.trials, 2);
    untouched(r, out, -EINVAL, "a trial inference of it failed: the script says no");
}

static void too_slow(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_READY; // there is all the time in the world to try it
    r->next.takes = ROWS * STEP + MS;
    struct swap_report out = swap(r, "second", true, 0);
    assert_int_equal(out.inference_worst_ns, ROWS * STEP + MS);
    untouched(r, out, -ETIME, "too slow: 1001 ms");
}

// The budget may be tighter than the chunk is long.
static void too_slow_for_the_budget(void **state)
{
    struct rig *r = *state;
    r->swap->src.deadline_ns = THINK - 1;
    struct swap_report out = swap(r, "second", true, 0);
    assert_int_equal(out.deadline_ns, THINK - 1);
    untouched(r, out, -ETIME, "too slow: 30 ms");
}

static void just_fast_enough(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_READY;
    r->next.takes = ROWS * STEP;
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
}

static void beyond_the_bound_needs_force(void **state)
{
    struct rig *r = *state;
    r->next.offset = 0.3001;
    struct swap_report out = swap(r, "second", false, 0);
    untouched(r, out, -EDOM, "0.300 rad from where the running policy");
    assert_true(fabs(out.difference_rad - 0.3001) < 1e-6);
    lines = 0;
    assert_int_equal(swap(r, "second", true, 0).stage, SWAP_DONE);
    r->next.offset = 0.6; // 0.2999 further: within
    assert_int_equal(swap(r, "third", false, 0).stage, SWAP_DONE);
}

static void beyond_the_hard_limits_is_never_right(void **state)
{
    struct rig *r = *state;
    r->next.slope = 0.2;
    struct swap_report out = swap(r, "second", true, 0);
    // Joint b rests at 0.1: row 45 is the first beyond 9, a's is at it.
    untouched(r, out, -ERANGE, "b at 9.100 rad in row 45");
}

static void without_an_observation_it_needs_force(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_WAITING;
    r->no_frames = true;
    rig_run(r, 2 * NS_PER_S);
    uint64_t n = begin(r, "second", false, 0);
    ns_t since = r->now;
    struct swap_report out = finish(r, n);
    assert_in_range(r->now - since, PATIENCE, PATIENCE + 50 * MS);
    assert_int_equal(out.result, -ENODATA);
    assert_non_null(strstr(out.text, "no fresh observation came within 3 s"));
    assert_string_equal(policy(r).name, "first");
    out = swap(r, "second", true, 0);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_int_equal(out.trials, 0);
    assert_non_null(strstr(out.text, "not tried"));
    assert_non_null(strstr(out.text, "waits for an observation"));
    assert_string_equal(policy(r).name, "second");
    r->no_frames = false;
    rig_run(r, NS_PER_S);
    assert_true(r->chunks[2] > 0);
}

static void a_stale_observation_is_none(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_READY;
    r->no_frames = true; // the last one is a few milliseconds old, and ages
    rig_run(r, NS_PER_S + 2 * PERIOD);
    assert_int_equal(swap(r, "second", false, 0).result, -ENODATA);
}

// Chunks that are over when the next one comes: the arm goes from HOLD to HOLD, and there
// is no time for anybody else.
static void no_room(void **state)
{
    struct rig *r = *state;
    r->script[0].takes = 900 * MS;
    rig_run(r, 3 * NS_PER_S);
    struct swap_report out = swap(r, "second", true, 0);
    assert_int_equal(out.result, -EAGAIN);
    assert_non_null(strstr(out.text, "leave no time"));
    assert_non_null(strstr(out.text, "policy.threads"));
    assert_non_null(strstr(out.text, "chunks.horizon_rows"));
    assert_non_null(strstr(out.text, "actctl disarm"));
    r->report.mode = LADDER_READY; // disarmed there is
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
}

static void a_trial_that_hangs(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_READY;
    r->next.takes = 100 * NS_PER_S;
    uint64_t n = begin(r, "second", true, 0);
    ns_t since = r->now;
    struct swap_report out = finish(r, n);
    assert_int_equal(out.result, -ETIMEDOUT);
    assert_non_null(strstr(out.text, "has not ended after 3.0 s"));
    assert_in_range(r->now - since, PATIENCE, PATIENCE + 300 * MS);
    assert_int_equal(r->frees, 0); // the worker is in it
    assert_int_equal(refused(r, "third", "under way"), -EBUSY);
    rig_run(r, 100 * NS_PER_S);
    assert_int_equal(r->frees, 1);
    r->next.takes = THINK;
    assert_int_equal(swap(r, "third", false, 0).stage, SWAP_DONE);
}

static void the_running_policy_hangs(void **state)
{
    struct rig *r = *state;
    uint64_t n = begin(r, "second", false, 0);
    until_stage(r, n, SWAP_COMMITTING); // its last trial is just over
    // In truth the worker is stuck: it never comes to take the seat.
    ns_t end = r->now + PATIENCE + 10 * MS;
    while (r->now < end) {
        r->now += MS;
        (void)swap_turn(r->swap, r->now);
    }
    struct swap_report out = look(r, n);
    assert_int_equal(out.result, -ETIMEDOUT);
    assert_non_null(strstr(out.text, "running policy's inference has not ended"));
    assert_string_equal(policy(r).name, "first");
    rig_run(r, NS_PER_S); // it comes back, and finds nothing to take
    assert_int_equal(r->report.generation, 1);
    assert_int_equal(r->frees, 1);
}

// ---- it is given back ------------------------------------------------------------------------

static void its_first_inference_fails(void **state)
{
    struct rig *r = *state;
    r->next.rc = -EDOM;
    r->next.fails_from = 6;
    struct swap_report out = swap(r, "second", false, 0);
    assert_int_equal(out.stage, SWAP_FAILED);
    assert_int_equal(out.result, -EIO);
    assert_non_null(strstr(out.text, "the script says no; the policy before it drives"));
    assert_string_equal(policy(r).name, "first");
    assert_int_equal(policy(r).generation, 3); // after 2: the loop takes its chunks
    assert_string_equal(seats, "second:2 first:3 ");
    assert_string_equal(policy(r).previous, "");
    assert_int_equal(r->frees, 1);
    rig_run(r, NS_PER_S);
    assert_int_equal(r->report.generation, 3);
    assert_true(r->least > 0);
    r->next.rc = 0;
    assert_int_equal(swap(r, "third", false, 0).stage, SWAP_DONE);
    assert_string_equal(policy(r).previous, "first");
    r->next.rc = -EDOM;
    assert_int_equal(swap(r, "fourth", false, 0).result, -EIO);
    assert_string_equal(policy(r).name, "third");
    assert_string_equal(policy(r).previous, "first"); // the way back is as it was
    assert_int_equal(r->frees, 2);
}

static void the_loop_refuses_its_chunk(void **state)
{
    struct rig *r = *state;
    r->refuses = 2;
    struct swap_report out = swap(r, "second", false, 0);
    assert_int_equal(out.stage, SWAP_FAILED);
    assert_non_null(strstr(out.text, "did not take its first chunk"));
    rig_run(r, NS_PER_S);
    assert_int_equal(r->report.generation, 3);
    assert_string_equal(policy(r).name, "first");
    assert_int_equal(r->frees, 1);
    assert_true(r->least > 0);
}

// An arm at rest shows nothing of a new chunk: that it was made is enough.
static void while_disarmed(void **state)
{
    struct rig *r = *state;
    r->report.mode = LADDER_READY;
    r->refuses = 2;
    struct swap_report out = swap(r, "second", false, 0);
    assert_int_equal(out.stage, SWAP_DONE);
    assert_non_null(strstr(out.text, "second is in use after ")); // it drives nothing
    assert_string_equal(policy(r).name, "second");
    r->next.rc = -EDOM; // from its first chunk on
    r->next.fails_from = 6;
    out = swap(r, "third", false, 0);
    assert_int_equal(out.result, -EIO);
    assert_non_null(strstr(out.text, "the policy before it is in use again"));
}

// ---- it is called off ------------------------------------------------------------------------

static void cancel(struct rig *r)
{
    swap_cancel(r->swap, "an emergency stop");
}

static void called_off_while_it_loads(void **state)
{
    struct rig *r = *state;
    r->while_loading = cancel;
    struct swap_report out = swap(r, "second", false, 0);
    r->loads = 0; // it was none
    untouched(r, out, -ECANCELED, "an emergency stop");
}

static void called_off_before_it_begins(void **state)
{
    struct rig *r = *state;
    uint64_t n = begin(r, "second", false, 0);
    cancel(r);
    struct swap_report out = finish(r, n);
    r->loads = 0;
    untouched(r, out, -ECANCELED, "an emergency stop");
}

// At each millisecond from the request on: it is given up, or it was committing already.
static void called_off_at_any_time(void **state)
{
    struct rig *r = *state;
    int off = 0, through = 0;
    for (int ms = 0; ms < 450; ms++) {
        uint64_t n = begin(r, "second", false, 0);
        rig_run(r, ms * MS);
        bool late = look(r, n).stage >= SWAP_COMMITTING;
        cancel(r);
        rig_run(r, THINK + 8 * MS); // the trial that it may be in
        if (!late)
            assert_false(busy(r));
        struct swap_report out = finish(r, n);
        off += out.stage == SWAP_FAILED && out.result == -ECANCELED;
        through += out.stage == SWAP_DONE;
        assert_int_equal(late, out.stage == SWAP_DONE);
    }
    assert_int_equal(off + through, 450);
    assert_true(off > 100 && through > 50);
    assert_true(r->least > 0);
    assert_int_equal(policy(r).swaps, through);
}

static void an_arm_that_stops_calls_it_off(void **state)
{
    static const enum ladder_state to[] = {LADDER_STOPPING, LADDER_STOPPED, LADDER_ESTOP};
    struct rig *r = *state;
    for (int i = 0; i < 3; i++) {
        r->report.mode = LADDER_RUNNING;
        uint64_t n = begin(r, "second", false, 0);
        until_stage(r, n, SWAP_TRYING);
        rig_event(r, to[i]);
        rig_tick(r);
        rig_run(r, 2 * MS);
        struct swap_report out = look(r, n);
        assert_int_equal(out.result, -ECANCELED);
        assert_non_null(strstr(out.text, "the arm stops (ESTOP)"));
        assert_non_null(strstr(out.text, "the policy before, first, stays loaded"));
        (void)finish(r, n);
    }
    // One that has stopped before may be given another policy.
    assert_int_equal(swap(r, "second", false, 0).stage, SWAP_DONE);
}

static void a_disarmed_arm_does_not(void **state)
{
    struct rig *r = *state;
    uint64_t n = begin(r, "second", false, 0);
    until_stage(r, n, SWAP_TRYING);
    rig_event(r, LADDER_DISARMING);
    rig_run(r, 10 * MS);
    rig_event(r, LADDER_READY);
    assert_int_equal(finish(r, n).stage, SWAP_DONE);
}

static void not_once_it_commits(void **state)
{
    struct rig *r = *state;
    uint64_t n = begin(r, "second", false, 0);
    until_stage(r, n, SWAP_COMMITTING);
    cancel(r);
    rig_event(r, LADDER_ESTOP);
    assert_int_equal(finish(r, n).stage, SWAP_DONE);
    cancel(r); // nothing is under way: it does not hit the next
    assert_int_equal(swap(r, "third", false, 0).stage, SWAP_DONE);
}

static void ends_at_any_stage(void **state)
{
    for (enum swap_stage stage = SWAP_LOADING; stage <= SWAP_DONE; stage++) {
        struct rig *r = *state;
        until_stage(r, begin(r, "second", false, 0), stage);
        swap_stop(r->swap);
        assert_int_equal(refused(r, "third", stage == SWAP_LOADING ? "" : ""),
                         -ECANCELED);
        assert_int_equal(rig_teardown(state),
                         0); // a leak, or freed twice: sanitizers see it
        assert_int_equal(setup(state), 0);
    }
}

// ---- many ------------------------------------------------------------------------------------

static void a_thousand_swaps(void **state)
{
    struct rig *r = *state;
    allocations = 0;
    counting = true; // what counts nothing proves nothing
    void *volatile p = malloc(1);
    free(p);
    counting = false;
    assert_int_equal(allocations, COUNTS_ALLOCATIONS ? 2 : 0);
    allocations = 0;
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i % 7);
        r->next = script_plain();
        r->load_rc = i % 5 == 4 ? -EINVAL : 0;
        r->next.rc = i % 11 == 10 ? -EDOM : 0;
        r->next.offset = i % 13 == 12 ? 5 : 0.01 * (i % 3);
        bool good = r->load_rc == 0 && r->next.rc == 0 && i % 13 != 12;
        struct swap_report out = swap(r, i % 3 == 2 ? NULL : name, false, 0);
        assert_int_equal(out.stage == SWAP_DONE, good || i % 3 == 2);
    }
    assert_int_equal(allocations, 0);
    assert_true(r->least > 0);
    int made = 0;
    for (int i = 0; i < SCRIPTS; i++)
        made += r->script[i].made && !r->script[i].freed;
    assert_int_equal(made, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(drives_and_tells),
        TEST(tells_how_long_at_every_stage),
        TEST(at_any_point_of_an_inference),
        TEST(a_slow_candidate_does_not_starve_the_arm),
        TEST(back_needs_no_load_and_frees_what_is_superseded),
        TEST(is_not_freed_while_held),
        TEST(another_rate_and_another_chunk),
        TEST(more_rows_than_the_loop_executes),
        TEST(fewer_cameras_and_back),
        TEST(one_at_a_time),
        TEST(names_that_cannot_be),
        TEST(forgets_old_reports),
        TEST(the_loader_says_no),
        TEST(the_list_says_what_was_refused),
        TEST(a_trial_fails),
        TEST(too_slow),
        TEST(too_slow_for_the_budget),
        TEST(just_fast_enough),
        TEST(beyond_the_bound_needs_force),
        TEST(beyond_the_hard_limits_is_never_right),
        TEST(without_an_observation_it_needs_force),
        TEST(a_stale_observation_is_none),
        TEST(no_room),
        TEST(a_trial_that_hangs),
        TEST(the_running_policy_hangs),
        TEST(its_first_inference_fails),
        TEST(the_loop_refuses_its_chunk),
        TEST(while_disarmed),
        TEST(called_off_while_it_loads),
        TEST(called_off_before_it_begins),
        TEST(called_off_at_any_time),
        TEST(an_arm_that_stops_calls_it_off),
        TEST(a_disarmed_arm_does_not),
        TEST(not_once_it_commits),
        TEST(ends_at_any_stage),
        TEST(a_thousand_swaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
