// Rows wait for the actions of their times. A row lies between two recorded actions; what was
// commanded then is taken from the line between them, unless they are too far apart (a gap, another
// episode) or one of them is not usable (the policy did not drive).
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_eval_impl.h"

#define LEAST_EXPONENT -48
#define APART_NS       INT64_C(1000000000) // between two of the worst moments

struct eval_pending {
    struct eval_pending *next;
    int64_t anchor_ns;
    int row;     // the next one to be answered
    uint64_t at; // actions below this one are before that row
    uint64_t n;
    double sum;
    int worst_joint;
    double worst;
    double still[ACTD_MAX_JOINTS];
    float rows[]; // (rows, joints)
};

static int choose_every(int rows)
{
    int every = (rows + EVAL_HORIZONS - 1) / EVAL_HORIZONS;
    return (every + 4) / 5 * 5;
}

int eval_score_init(struct eval_score *s, int joints, int rows, int64_t step_ns,
                    int64_t reach_ns)
{
    memset(s, 0, sizeof *s);
    s->joints = joints;
    s->rows = rows;
    s->step_ns = step_ns;
    s->reach_ns = reach_ns;
    s->every_rows = choose_every(rows);
    s->horizons = (rows - 1) / s->every_rows + 1;
    s->histogram =
        calloc((size_t)(joints + 1) * EVAL_OCTAVES * EVAL_PARTS, sizeof(uint32_t));
    s->action = calloc(EVAL_ACTIONS, sizeof *s->action);
    return s->histogram && s->action ? 0 : -ENOMEM;
}

static void free_list(struct eval_pending *p)
{
    while (p) {
        struct eval_pending *next = p->next;
        free(p);
        p = next;
    }
}

void eval_score_free(struct eval_score *s)
{
    free(s->histogram);
    free(s->action);
    free_list(s->first);
    free_list(s->spare);
    memset(s, 0, sizeof *s);
}

// ---- sums ------------------------------------------------------------------------------------

double eval_mean(const struct eval_sum *s)
{
    return s->n > 0 ? s->sum / (double)s->n : 0;
}

static void add(struct eval_sum *s, double error, double still, int64_t at_ns)
{
    s->n++;
    s->sum += error;
    s->still += still;
    if (error > s->max || s->n == 1) {
        s->max = error;
        s->max_at_ns = at_ns;
    }
}

static size_t bucket_of(double error)
{
    int exponent;
    double part = frexp(error, &exponent); // 0.5 … 1
    int octave = exponent - LEAST_EXPONENT;
    if (!(error > 0) || octave < 0)
        return 0;
    if (octave >= EVAL_OCTAVES)
        return (size_t)EVAL_OCTAVES * EVAL_PARTS - 1;
    return (size_t)octave * EVAL_PARTS + (size_t)((part - 0.5) * 2 * EVAL_PARTS);
}

double eval_score_p95(const struct eval_score *s, int joint)
{
    const uint32_t *h = s->histogram + (size_t)(joint < 0 ? s->joints : joint) *
                                           (size_t)EVAL_OCTAVES * EVAL_PARTS;
    uint64_t all = 0, below = 0;
    for (int i = 0; i < EVAL_OCTAVES * EVAL_PARTS; i++)
        all += h[i];
    for (int i = 0; i < EVAL_OCTAVES * EVAL_PARTS; i++) {
        below += h[i];
        if (below > 0 && (double)below >= 0.95 * (double)all) // the middle of the bucket
            return i == 0 ? 0
                          : ldexp(0.5 + (i % EVAL_PARTS + 0.5) / EVAL_PARTS / 2,
                                  i / EVAL_PARTS + LEAST_EXPONENT);
    }
    return 0;
}

static void compare_row(struct eval_score *s, struct eval_pending *p, const double *was,
                        int64_t at_ns)
{
    const float *row = p->rows + (size_t)p->row * (size_t)s->joints;
    const size_t buckets = (size_t)EVAL_OCTAVES * EVAL_PARTS;
    for (int j = 0; j < s->joints; j++) {
        double error = fabs((double)row[j] - was[j]), still = fabs(p->still[j] - was[j]);
        if (!isfinite(error))
            continue;
        add(&s->joint[j], error, still, at_ns);
        add(&s->all, error, still, at_ns);
        if (p->row % s->every_rows == 0)
            add(&s->horizon[p->row / s->every_rows][j], error, still, at_ns);
        s->histogram[(size_t)j * buckets + bucket_of(error)]++;
        s->histogram[(size_t)s->joints * buckets + bucket_of(error)]++;
        p->sum += error;
        p->n++;
        if (error > p->worst) {
            p->worst = error;
            p->worst_joint = j;
        }
    }
}

// ---- the worst moments -----------------------------------------------------------------------

static void remember(struct eval_score *s, const struct eval_moment *m)
{
    int i = 0;
    for (; i < s->worsts; i++) // of two close together the worse one stays
        if (llabs(s->worst[i].at_ns - m->at_ns) < APART_NS)
            break;
    if (i < s->worsts && s->worst[i].mean >= m->mean)
        return;
    if (i == s->worsts && s->worsts < EVAL_WORST)
        s->worsts++;
    else if (i == s->worsts && s->worst[--i].mean >= m->mean)
        return;
    s->worst[i] = *m;
    for (; i > 0 && s->worst[i - 1].mean < s->worst[i].mean; i--) {
        struct eval_moment swap = s->worst[i];
        s->worst[i] = s->worst[i - 1];
        s->worst[i - 1] = swap;
    }
}

static void finish(struct eval_score *s, struct eval_pending *p)
{
    if (p->n > 0) {
        const struct eval_moment m = {p->anchor_ns, p->sum / (double)p->n, p->worst_joint,
                                      p->worst};
        s->chunks++;
        if (p->n >= (uint64_t)s->joints * (uint64_t)s->rows / 2) // not of a row or two
            remember(s, &m);
    } else {
        s->unanswered++;
    }
    p->next = s->spare;
    s->spare = p;
}

// ---- rows and actions ------------------------------------------------------------------------

int eval_score_chunk(struct eval_score *s, int64_t anchor_ns, const float *row,
                     const double *still)
{
    size_t bytes = (size_t)s->rows * (size_t)s->joints * sizeof *row;
    struct eval_pending *p = s->spare;
    if (p)
        s->spare = p->next;
    else
        p = malloc(sizeof *p + bytes);
    if (!p)
        return -ENOMEM;
    memset(p, 0, sizeof *p);
    memcpy(p->rows, row, bytes);
    memcpy(p->still, still, (size_t)s->joints * sizeof *still);
    p->anchor_ns = anchor_ns;
    p->at = s->actions > EVAL_ACTIONS ? s->actions - EVAL_ACTIONS + 1 : 0;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
    return 0;
}

// What was commanded at a time between two actions. False: nobody knows.
static bool between(const struct eval_score *s, const struct eval_action *a,
                    const struct eval_action *b, int64_t at_ns, double *was)
{
    if (b->at_ns <= at_ns + s->slack_ns)
        a = b;
    if (!a || !a->usable || !b->usable || b->at_ns - a->at_ns > s->reach_ns)
        return false;
    double part = b == a ? 0 : (double)(at_ns - a->at_ns) / (double)(b->at_ns - a->at_ns);
    for (int j = 0; j < s->joints; j++)
        was[j] = a->pos[j] + (b->pos[j] - a->pos[j]) * part;
    return true;
}

// Rows up to the newest action. True: all are done.
static bool answer(struct eval_score *s, struct eval_pending *p)
{
    double was[ACTD_MAX_JOINTS];
    for (; p->row < s->rows; p->row++) {
        int64_t at_ns = p->anchor_ns + p->row * s->step_ns;
        while (p->at < s->actions &&
               s->action[p->at % EVAL_ACTIONS].at_ns < at_ns - s->slack_ns)
            p->at++;
        if (p->at == s->actions)
            return false;
        const struct eval_action *b = &s->action[p->at % EVAL_ACTIONS];
        // The one before it may have been forgotten, or never have been.
        bool known = p->at > 0 && p->at - 1 + EVAL_ACTIONS >= s->actions;
        if (between(s, known ? &s->action[(p->at - 1) % EVAL_ACTIONS] : NULL, b, at_ns,
                    was))
            compare_row(s, p, was, at_ns);
    }
    return true;
}

void eval_score_action(struct eval_score *s, const struct eval_action *a)
{
    s->action[s->actions++ % EVAL_ACTIONS] = *a;
    // All have equally many rows: they end in the order in which they began.
    for (struct eval_pending *p = s->first; p; p = p->next)
        answer(s, p);
    while (s->first && s->first->row == s->rows) {
        struct eval_pending *p = s->first;
        s->first = p->next;
        finish(s, p);
    }
}

void eval_score_end(struct eval_score *s)
{
    while (s->first) {
        struct eval_pending *p = s->first;
        s->first = p->next;
        answer(s, p); // it may have come after the last action
        finish(s, p);
    }
}
