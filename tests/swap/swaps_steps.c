// One swap: a good policy takes over and is the one that is published; a bad one is refused by
// name, and nothing changes.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/swap/swaps_run.h"

#define BACK_PART   4 // one swap in so many goes back
#define SAID_MAX    20
#define PUT_AWAY_MS 10000
#define AGAIN_MAX   5

void swaps_fail(struct swaps_run *r, const char *format, ...)
{
    va_list ap;

    if (r->failures++ >= SAID_MAX)
        return;
    va_start(ap, format);
    fprintf(stderr, "FAILED after %d swaps: ", r->done);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int keep_open(struct swaps_client *c, const char *socket)
{
    Actd__V1__ControlReply *m =
        c->fd < 0 ? NULL
                  : swaps_do(c, &(struct swaps_ask){ACTD__V1__VERB__VERB_STATUS, NULL,
                                                    false, NULL});
    bool open = m != NULL;

    swaps_free_reply(m);
    if (open)
        return 0;
    swaps_disconnect(c);
    return swaps_connect(c, socket);
}

int swaps_ready(struct swaps_run *r)
{
    int rc = keep_open(&r->a, r->world.socket);

    return rc ? rc : keep_open(&r->b, r->world.socket);
}

int swaps_in_use(struct swaps_run *r, char digest[65], uint32_t *generation)
{
    Actd__V1__ControlReply *m = swaps_do(
        &r->a, &(struct swaps_ask){ACTD__V1__VERB__VERB_STATUS, NULL, false, NULL});
    const Actd__V1__PolicyStatus *p = m && m->status ? m->status->policy_in_use : NULL;
    int rc = p && strlen(p->digest) == 64 ? 0 : -EPROTO;

    if (rc == 0) {
        snprintf(digest, 65, "%s", p->digest);
        *generation = p->generation;
    }
    swaps_free_reply(m);
    return rc;
}

const char *swaps_good_name(int i)
{
    static const char *const name[SWAPS_GOOD] = {"good-0", "good-1", "good-2"};

    return name[i];
}

int swaps_other(struct swaps_run *r)
{
    return (r->current + 1 + (int)swaps_below(&r->random, SWAPS_GOOD - 1)) % SWAPS_GOOD;
}

// ---- a good one ------------------------------------------------------------------------------

static void check_digest(struct swaps_run *r, const Actd__V1__SwapReport *s, int to)
{
    char now[65] = "";
    uint32_t generation = 0;

    if (!r->digest[to][0])
        snprintf(r->digest[to], 65, "%s", s->to_digest);
    if (swaps_in_use(r, now, &generation) != 0)
        swaps_fail(r, "no status after a swap to %s", s->to);
    if (strcmp(now, s->to_digest) != 0 || strcmp(now, r->digest[to]) != 0)
        swaps_fail(r, "%s is in use, digest %.8s of %s was reported, %.8s before", now,
                   s->to_digest, s->to, r->digest[to]);
    for (int i = 0; i < SWAPS_GOOD; i++)
        if (i != to && strcmp(r->digest[i], now) == 0)
            swaps_fail(r, "%s and %s have one digest", swaps_good_name(i), s->to);
    if (generation == r->generation)
        swaps_fail(r, "the generation did not change with a swap to %s", s->to);
    r->generation = generation;
}

void swaps_note_done(struct swaps_run *r, const Actd__V1__SwapReport *s, int to)
{
    struct swaps_times *t = &r->times[r->done < SWAPS_MAX ? r->done : SWAPS_MAX - 1];

    t->total = 1e-6 * (double)s->total_ns;
    t->load = 1e-6 * (double)s->load_ns;
    t->trial = 1e-6 * (double)s->trial_ns;
    t->commit = 1e-6 * (double)s->commit_ns;
    r->done++;
    r->current = to;
    r->worst_difference = fmax(r->worst_difference, s->difference_rad);
    if (s->trials < 5)
        swaps_fail(r, "only %u trials", s->trials);
    if (s->inference_worst_ns > s->deadline_ns || s->inference_worst_ns == 0)
        swaps_fail(r, "the worst trial took %llu ns of %llu",
                   (unsigned long long)s->inference_worst_ns,
                   (unsigned long long)s->deadline_ns);
    clock_sleep_until(clock_now_ns() + 20 * NS_PER_MS); // two ticks after, and the wire
    r->missed_at_commit += swaps_eye_missed(r->eye, s->tick);
    check_digest(r, s, to);
}

// Before a swap, one place: what is put away with the last one is not counted.
static void sample(struct swaps_run *r)
{
    int i = r->n_samples < SWAPS_MAX ? r->n_samples : SWAPS_MAX - 1;

    if (swaps_world_sample(&r->world, &r->rss_kib[i], &r->fds[i]) != 0)
        swaps_fail(r, "the daemon is gone; see %s", r->world.log);
}

Actd__V1__ControlReply *swaps_do_when_free(struct swaps_run *r,
                                           const struct swaps_ask *ask,
                                           void (*before)(struct swaps_run *))
{
    ns_t begin = clock_now_ns();
    Actd__V1__ControlReply *m;

    for (;;) {
        double ms;

        if (before)
            before(r);
        m = swaps_do(&r->a, ask);
        ms = 1e-6 * (double)(clock_now_ns() - begin);
        if (!m || m->result != ACTD__V1__RESULT__RESULT_BUSY || ms > PUT_AWAY_MS)
            return m;
        swaps_free_reply(m);
        r->waited++;
        r->waited_ms = fmax(r->waited_ms, ms);
        clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS);
    }
}

static int index_of(const char *name)
{
    for (int i = 0; i < SWAPS_GOOD; i++)
        if (strcmp(name, swaps_good_name(i)) == 0)
            return i;
    return -1;
}

// The machine is busy with others, and the running policy comes first.
bool swaps_no_time(const Actd__V1__ControlReply *m)
{
    return m && m->result == ACTD__V1__RESULT__RESULT_FAILED &&
           (strstr(m->text, "leave no time") || strstr(m->text, "has not ended after") ||
            strstr(m->text, "no fresh observation") || strstr(m->text, "the arm stops"));
}

// A person would look, and force it or ask again.
static bool asks_again(struct swaps_run *r, const Actd__V1__ControlReply *m,
                       struct swaps_ask *ask)
{
    const Actd__V1__SwapReport *s = m ? m->swap : NULL;

    if (!s || m->result != ACTD__V1__RESULT__RESULT_FAILED)
        return false;
    if (!ask->force && s->difference_rad > s->bound_rad) {
        r->forced++;
        return ask->force = true;
    }
    r->no_time += swaps_no_time(m);
    return swaps_no_time(m);
}

void swaps_step_good(struct swaps_run *r)
{
    bool back = r->done > 0 && swaps_below(&r->random, BACK_PART) == 0;
    struct swaps_ask ask = {back ? ACTD__V1__VERB__VERB_SWAP_BACK
                                 : ACTD__V1__VERB__VERB_SWAP,
                            back ? NULL : swaps_good_name(swaps_other(r)), false, NULL};
    Actd__V1__ControlReply *m = swaps_do_when_free(r, &ask, sample);

    for (int i = 0; i < AGAIN_MAX && asks_again(r, m, &ask); i++) {
        swaps_free_reply(m);
        m = swaps_do_when_free(r, &ask, sample);
    }
    r->n_samples++;
    if (swaps_no_time(m)) {
        swaps_free_reply(m);
        return;
    }
    if (!m || m->result != ACTD__V1__RESULT__RESULT_OK || !m->swap ||
        index_of(m->swap->to) < 0 || (!back && strcmp(m->swap->to, ask.name) != 0))
        swaps_fail(r, "%s %s: result %d, %s", back ? "back" : "swap",
                   back ? "" : ask.name, m ? (int)m->result : -1,
                   m ? m->text : "no answer");
    else
        swaps_note_done(r, m->swap, index_of(m->swap->to));
    r->back += back;
    swaps_free_reply(m);
}

// ---- a bad one -------------------------------------------------------------------------------

static void check_words(struct swaps_run *r, const struct swaps_bad *b,
                        const Actd__V1__ControlReply *m)
{
    for (int i = 0; i < 3 && b->told[i]; i++) {
        const char *word = strcmp(b->told[i], "%") == 0 ? swaps_spoilt() : b->told[i];

        if (!strstr(m->text, word))
            swaps_fail(r, "%s: the refusal does not name %s: \"%s\"", b->what, word,
                       m->text);
    }
    for (const char *c = m->text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            swaps_fail(r, "%s: a control character in the answer", b->what);
}

void swaps_step_bad(struct swaps_run *r)
{
    const struct swaps_bad *b = &swaps_bad[r->next_bad++ % swaps_bad_count];
    char before[65] = "", after[65] = "";
    uint32_t was = 0, is = 1;
    Actd__V1__ControlReply *m;

    if (b->make && b->make(&r->world, &r->random) != 0) {
        swaps_fail(r, "cannot make: %s", b->what);
        return;
    }
    (void)swaps_in_use(r, before, &was);
    m = swaps_do_when_free(r,
                           &(struct swaps_ask){ACTD__V1__VERB__VERB_SWAP,
                                               b->name ? b->name : "bad", true, NULL},
                           NULL);
    if (!m || (m->result != ACTD__V1__RESULT__RESULT_FAILED &&
               m->result != ACTD__V1__RESULT__RESULT_REFUSED &&
               m->result != ACTD__V1__RESULT__RESULT_INVALID))
        swaps_fail(r, "%s: result %d, %s", b->what, m ? (int)m->result : -1,
                   m ? m->text : "no answer");
    else if (!*m->text)
        swaps_fail(r, "%s: refused without a word", b->what);
    else if (!swaps_no_time(m))
        check_words(r, b, m);
    (void)swaps_ready(r); // whoever asks what is no request at all is hung up on
    (void)swaps_in_use(r, after, &is);
    if (strcmp(before, after) != 0 || was != is)
        swaps_fail(r, "%s: the policy in use changed", b->what);
    r->refused++;
    swaps_free_reply(m);
    if (b->make)
        swaps_remove_bad(&r->world);
}
