// swap: the policy changed while the arm moves, as the operator sees it: lines of
// progress, then a table, then, where it came to nothing, why and what to do.
#include <stdio.h>
#include <string.h>

#include "daemon/actctl/ctl.h"
#include "daemon/actctl/style.h"
#include "daemon/actctl/text.h"
#include "daemon/clock.h"
#include "daemon/table.h"

// Between two answers of a swap: reading half a gigabyte from a slow disk takes its time.
#define SWAP_TIMEOUT_MS 60000

static const char *const allowed[] = {"joints", "units", "cameras", "rate", "chunk"};
#define ALLOWED   (sizeof allowed / sizeof allowed[0])
#define NAME_ROOM 64 // CONFIG_NAME, of the daemon

// "rate,chunk" into pointers to words, in place. How many, or -1 at a word that is none
// of them.
static int split(char *list, char *words[ALLOWED])
{
    int n = 0;

    for (char *w = strtok(list, ","); w; w = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < ALLOWED && strcmp(w, allowed[i]) != 0)
            i++;
        if (i == ALLOWED)
            return -1;
        for (int k = 0; k < n; k++)
            i = strcmp(w, words[k]) == 0 ? ALLOWED : i;
        if (i < ALLOWED)
            words[n++] = w;
    }
    return n;
}

// As the protocol wants it; else the daemon could only say that this is no request.
static bool name_fits(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return n > 0 && n < NAME_ROOM;
}

static int compose(struct ctl *c, Actd__V1__ControlRequest *q, char *list, char **words)
{
    int n = 0;

    if (c->back ? c->n_args || c->allow : c->n_args != 1)
        return ctl_fail(
            c, CTL_USAGE,
            "swap wants the NAME of a policy, or --back without a NAME and --allow: "
            "`actctl policies` lists the names");
    if (c->allow) {
        n = split(list, words);
        if (n <= 0)
            return ctl_fail(
                c, CTL_USAGE,
                "--allow wants a list of joints, units, cameras, rate, chunk");
    }
    if (!c->back) {
        const char *s = c->args[0];
        if (!*s || strchr(s, '/') || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
            return ctl_fail(
                c, CTL_USAGE,
                "swap wants the name of a directory in swap.directory, not a path: "
                "`actctl policies` lists the names");
        if (!name_fits(s))
            return ctl_fail(c, CTL_USAGE,
                            "the name of a policy has at most 63 letters, digits and "
                            "signs of ASCII: rename its directory");
        q->name = c->args[0];
    }
    q->verb = c->back ? ACTD__V1__VERB__VERB_SWAP_BACK : ACTD__V1__VERB__VERB_SWAP;
    q->force = c->force;
    q->allow = words;
    q->n_allow = (size_t)n;
    return 0;
}

// The report's time is that of the daemon's last step; since then more may have passed.
static uint64_t elapsed_ns(const Actd__V1__SwapReport *s, ns_t begin_ns)
{
    uint64_t passed = (uint64_t)(clock_now_ns() - begin_ns);

    return s->total_ns > passed ? s->total_ns : passed;
}

static void progress(const Actd__V1__ControlReply *r, ns_t begin_ns)
{
    static const char *const stage[] = {
        [ACTD__V1__SWAP_STAGE__SWAP_STAGE_LOADING] = "loading and checking",
        [ACTD__V1__SWAP_STAGE__SWAP_STAGE_TRYING] = "trying beside the running policy",
        [ACTD__V1__SWAP_STAGE__SWAP_STAGE_COMMITTING] = "changing over"};
    const Actd__V1__SwapReport *s = r->swap;
    const char *what = "";

    if (s && s->stage >= ACTD__V1__SWAP_STAGE__SWAP_STAGE_LOADING &&
        s->stage <= ACTD__V1__SWAP_STAGE__SWAP_STAGE_COMMITTING)
        what = stage[s->stage];
    if (s)
        fprintf(stderr, "  %9s  %s  %s", text_ns(elapsed_ns(s, begin_ns)),
                text_safe(s->to), what);
    if (s && s->trials)
        fprintf(stderr, ", %u trial%s, worst %s", s->trials, PLURAL(s->trials),
                text_ns(s->inference_worst_ns));
    if (r->text && *r->text)
        fprintf(stderr, "%s%s", s ? ": " : "  ", text_safe(r->text));
    fputc('\n', stderr);
}

static void row_times(struct table *t, const Actd__V1__SwapReport *s)
{
    char tried[40] = "", over[48] = "";

    if (s->trial_ns)
        snprintf(tried, sizeof tried, ", tried for %s", text_ns(s->trial_ns));
    if (s->commit_ns)
        snprintf(over, sizeof over, ", changed over in %s", text_ns(s->commit_ns));
    table_row(t, "times\tloaded in %s%s%s, in all %s", text_ns(s->load_ns), tried, over,
              text_ns(s->total_ns));
    if (s->trials)
        table_row(t, "inference\t%u trial%s, median %s, worst %s; deadline %s%s",
                  s->trials, PLURAL(s->trials), text_ns(s->inference_median_ns),
                  text_ns(s->inference_worst_ns), text_ns(s->deadline_ns),
                  s->deadline_ns && s->inference_worst_ns > s->deadline_ns ? " (too slow)"
                                                                           : "");
}

static bool apart(const Actd__V1__SwapReport *s)
{
    return s->difference_rad > s->bound_rad && s->bound_rad > 0;
}

// mode: after it, UNSPECIFIED when nobody knows. A candidate that never was a policy has
// neither a digest nor times.
static void print_report(const Actd__V1__SwapReport *s, Actd__V1__Mode mode)
{
    static struct table t;
    bool live = mode == ACTD__V1__MODE__MODE_RUNNING;

    table_row(&t, "from\t%s", text_safe(s->from));
    if (*s->from_digest)
        table_row(&t, "\t%s", text_safe(s->from_digest));
    table_row(&t, "to\t%s", text_safe(s->to));
    if (*s->to_digest)
        table_row(&t, "\t%s", text_safe(s->to_digest));
    if (*s->to_digest && s->load_ns)
        row_times(&t, s);
    if (s->difference_joint && *s->difference_joint)
        table_row(&t, "difference\t%.4f rad at most: %s, row %u; bound %.4f rad%s",
                  s->difference_rad, text_safe(s->difference_joint), s->difference_row,
                  s->bound_rad, apart(s) ? " (above)" : "");
    if (s->golden_error >= 0 && s->load_ns)
        table_row(&t, "golden\tlargest relative error %.1e", s->golden_error);
    if (s->stage == ACTD__V1__SWAP_STAGE__SWAP_STAGE_DONE)
        table_row(&t, "%s\tfrom tick %llu", live ? "live" : "in use",
                  (unsigned long long)s->tick);
    table_print(&t, stdout);
}

// What the arm does now that it is decided. Not to know is no failure of the swap.
static Actd__V1__Mode mode_after(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_STATUS);
    Actd__V1__ControlReply *r;
    Actd__V1__Mode mode = ACTD__V1__MODE__MODE_UNSPECIFIED;
    char why[TALK_WHY];

    if (ctl_try(c, &q, &r, why) == 0 && r->status)
        mode = r->status->mode;
    ctl_free(r);
    return mode;
}

static const char *stays(Actd__V1__Mode mode)
{
    switch ((int)mode) {
    case ACTD__V1__MODE__MODE_RUNNING:
        return "the running policy goes on";
    case ACTD__V1__MODE__MODE_STOPPING:
        return "the policy before stays loaded; the arm is stopping: see actctl status";
    case ACTD__V1__MODE__MODE_STOPPED:
    case ACTD__V1__MODE__MODE_ESTOP:
        return "the policy before stays loaded; the arm has stopped: see actctl status";
    default:
        return "the policy before stays loaded";
    }
}

// What the daemon's sentence leaves out.
static void remedy(const struct ctl *c, const Actd__V1__ControlReply *r,
                   Actd__V1__Mode mode)
{
    const char *text = r->text ? r->text : "";

    if (r->swap && apart(r->swap) && !c->force && !strstr(text, "--force"))
        fprintf(stderr, "actctl: to take it all the same: actctl swap %s --force\n",
                c->back ? "--back" : text_safe(c->args[0]));
    fprintf(stderr, "actctl: %s\n", stays(mode));
}

static const char *done(Actd__V1__Mode mode)
{
    return mode == ACTD__V1__MODE__MODE_RUNNING ? "the new policy drives"
           : mode == ACTD__V1__MODE__MODE_UNSPECIFIED
               ? "the new policy is in use"
               : "the new policy is in use; the arm does not follow it now: see actctl status";
}

// The whole answer of a swap that is over.
static int tell(struct ctl *c, const Actd__V1__ControlReply *r)
{
    int status = ctl_status(c, r);
    bool decided = !c->json && (status == CTL_OK || status == CTL_CANDIDATE);
    Actd__V1__Mode mode = decided ? mode_after(c) : ACTD__V1__MODE__MODE_UNSPECIFIED;

    if (!c->json && r->swap)
        print_report(r->swap, mode);
    fflush(stdout);
    ctl_tell(c, r);
    if (decided && status)
        remedy(c, r, mode);
    else if (decided)
        printf("%s\n", r->text && *r->text ? text_safe(r->text) : done(mode));
    return status;
}

static int follow(struct ctl *c, Actd__V1__ControlReply *r, ns_t begin_ns)
{
    int status;

    while (r->result == ACTD__V1__RESULT__RESULT_PROGRESS) {
        if (!c->json)
            progress(r, begin_ns);
        ctl_free(r);
        status = ctl_more(c, SWAP_TIMEOUT_MS, &r);
        if (status)
            return status;
    }
    status = tell(c, r);
    ctl_free(r);
    return status;
}

int swap_main(struct ctl *c)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_UNSPECIFIED);
    Actd__V1__ControlReply *r;
    char list[256], *words[ALLOWED];
    ns_t begin_ns = clock_now_ns();
    int status;

    if (snprintf(list, sizeof list, "%s", c->allow ? c->allow : "") >= (int)sizeof list)
        return ctl_fail(c, CTL_USAGE, "--allow wants a shorter list");
    status = compose(c, &q, list, words);
    if (!status)
        status = ctl_ask(c, &q, &r);
    return status ? status : follow(c, r, begin_ns);
}
