// What may happen during a swap, besides the swap.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/swap/swaps_run.h"

#define PATIENCE_MS 60000

// The end of the swap that client a has asked for.
static Actd__V1__ControlReply *end_of_swap(struct swaps_run *r)
{
    Actd__V1__ControlReply *m;

    while ((m = swaps_receive(&r->a, PATIENCE_MS)) &&
           m->result == ACTD__V1__RESULT__RESULT_PROGRESS)
        swaps_free_reply(m);
    return m;
}

// Begins one and waits until it is under way, and a random while more. Returns to which.
static int begin(struct swaps_run *r)
{
    int to = swaps_other(r);
    ns_t until = clock_now_ns() + 10 * NS_PER_S; // the last one may have to be put away
    Actd__V1__ControlReply *m = NULL;

    (void)swaps_ready(r);
    do {
        swaps_free_reply(m);
        if (swaps_send(&r->a, &(struct swaps_ask){ACTD__V1__VERB__VERB_SWAP,
                                                  swaps_good_name(to), true, NULL}) != 0)
            return -1;
        m = swaps_receive(&r->a, PATIENCE_MS);
        clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS);
    } while (m && m->result == ACTD__V1__RESULT__RESULT_BUSY && clock_now_ns() < until);
    if (!m || m->result != ACTD__V1__RESULT__RESULT_PROGRESS) {
        swaps_fail(r, "a swap does not begin: %d, %s", m ? (int)m->result : -1,
                   m ? m->text : "no answer");
        to = -1;
    }
    swaps_free_reply(m);
    clock_sleep_until(clock_now_ns() + (ns_t)swaps_below(&r->random, 400) * NS_PER_MS);
    return to;
}

static void must_be_done(struct swaps_run *r, int to, const char *during)
{
    Actd__V1__ControlReply *m = end_of_swap(r);

    if (swaps_no_time(m))
        r->no_time++;
    else if (!m || m->result != ACTD__V1__RESULT__RESULT_OK || !m->swap)
        swaps_fail(r, "%s during a swap: it ends with %d, %s", during,
                   m ? (int)m->result : -1, m ? m->text : "no answer");
    else
        swaps_note_done(r, m->swap, to);
    swaps_free_reply(m);
}

// By client b. Returns the result.
static int say(struct swaps_run *r, Actd__V1__Verb verb, const char *name)
{
    Actd__V1__ControlReply *m =
        swaps_do(&r->b, &(struct swaps_ask){verb, name, false, NULL});
    int result = m ? (int)m->result : -1;

    swaps_free_reply(m);
    return result;
}

static void second_swap(struct swaps_run *r)
{
    int to = begin(r);

    if (to < 0)
        return;
    // It may be over by now; then this is one of its own.
    int result = say(r, ACTD__V1__VERB__VERB_SWAP, swaps_good_name(to));

    r->busy += result == ACTD__V1__RESULT__RESULT_BUSY;
    if (result != ACTD__V1__RESULT__RESULT_BUSY &&
        result != ACTD__V1__RESULT__RESULT_OK &&
        result != ACTD__V1__RESULT__RESULT_REFUSED)
        swaps_fail(r, "a second swap during one: result %d", result);
    must_be_done(r, to, "a second one");
}

static void disarm(struct swaps_run *r)
{
    int to = begin(r), result;

    if (to < 0)
        return;
    result = say(r, ACTD__V1__VERB__VERB_DISARM, NULL);
    if (result != ACTD__V1__RESULT__RESULT_OK)
        swaps_fail(r, "disarm during a swap: result %d", result);
    must_be_done(r, to, "disarm");
    r->disarmed++;
}

// Given up, unless it was committing; and the arm stops either way.
static void estop(struct swaps_run *r)
{
    int to = begin(r), result;
    char before[65] = "", now[65] = "";
    Actd__V1__ControlReply *m;

    if (to < 0)
        return;
    snprintf(before, sizeof before, "%s", r->digest[r->current]);
    result = say(r, ACTD__V1__VERB__VERB_ESTOP, NULL);
    if (result != ACTD__V1__RESULT__RESULT_OK)
        swaps_fail(r, "e-stop during a swap: result %d", result);
    m = end_of_swap(r);
    if (m && m->result == ACTD__V1__RESULT__RESULT_OK && m->swap) {
        swaps_note_done(r, m->swap, to);
    } else if (!m || m->result != ACTD__V1__RESULT__RESULT_FAILED) {
        swaps_fail(r, "e-stop during a swap: it ends with %d", m ? (int)m->result : -1);
    } else {
        r->abandoned++;
        (void)swaps_in_use(r, now, &r->generation);
        if (before[0] && strcmp(before, now) != 0)
            swaps_fail(r, "e-stop during a swap: the policy in use changed");
    }
    r->estopped++;
    swaps_free_reply(m);
}

static bool swapping(struct swaps_run *r, char digest[65])
{
    Actd__V1__ControlReply *m = swaps_do(
        &r->b, &(struct swaps_ask){ACTD__V1__VERB__VERB_STATUS, NULL, false, NULL});
    const Actd__V1__PolicyStatus *p = m && m->status ? m->status->policy_in_use : NULL;
    bool is = !p || *p->swapping_to;

    if (p)
        snprintf(digest, 65, "%s", p->digest);
    swaps_free_reply(m);
    return is;
}

// Whoever asked is gone: the swap ends one way or the other, and the daemon serves others.
static void client_ends(struct swaps_run *r)
{
    int to = begin(r);
    ns_t until = clock_now_ns() + PATIENCE_MS * NS_PER_MS;
    char now[65] = "";

    if (to < 0)
        return;
    swaps_disconnect(&r->a);
    while (swapping(r, now) && clock_now_ns() < until)
        clock_sleep_until(clock_now_ns() + 50 * NS_PER_MS);
    if (clock_now_ns() >= until)
        swaps_fail(r, "a swap whose client is gone does not end");
    if (r->digest[to][0] && strcmp(now, r->digest[to]) == 0)
        r->current = to;
    else if (strcmp(now, r->digest[r->current]) != 0)
        swaps_fail(r, "a swap whose client is gone left another policy, %.8s", now);
    (void)swaps_ready(r);
    (void)swaps_in_use(r, now, &r->generation);
    r->left++;
}

void swaps_step_trouble(struct swaps_run *r)
{
    static void (*const kind[])(struct swaps_run *) = {second_swap, disarm, estop,
                                                       client_ends};

    kind[r->next_trouble++ % 4](r);
    (void)swaps_ready(r);
    if (swaps_world_arm(&r->a) != 0)
        swaps_fail(r, "it cannot be armed after trouble %d", (r->next_trouble - 1) % 4);
}

void swaps_terminate(struct swaps_run *r, ns_t after_ns)
{
    ns_t asked;
    int status;

    if (swaps_ready(r) != 0 ||
        swaps_send(&r->a,
                   &(struct swaps_ask){ACTD__V1__VERB__VERB_SWAP,
                                       swaps_good_name(swaps_other(r)), true, NULL})) {
        swaps_fail(r, "no swap before SIGTERM");
        return;
    }
    clock_sleep_until(clock_now_ns() + after_ns);
    asked = clock_now_ns();
    kill(r->world.daemon, SIGTERM);
    status = swaps_world_wait(&r->world, 10);
    if (status != 0)
        swaps_fail(r, "SIGTERM %.0f ms into a swap: ends with %d",
                   1e-6 * (double)after_ns, status);
    printf("SIGTERM %3.0f ms into a swap: ended in %.2f s with status %d\n",
           1e-6 * (double)after_ns, 1e-9 * (double)(clock_now_ns() - asked), status);
    r->terminated++;
    swaps_disconnect(&r->a);
    swaps_disconnect(&r->b);
}
