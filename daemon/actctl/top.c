// top: the live view: asks a few times a second, draws, looks at the keyboard. One
// question is asked at a time and waited for 2 s at most, so that a key is answered within
// that even when the daemon is not. A daemon that is restarted is found again by its socket's path.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/actctl/ctl.h"
#include "daemon/actctl/style.h"
#include "daemon/actctl/term.h"
#include "daemon/actctl/top_draw.h"
#include "daemon/clock.h"

#define DEFAULT_HZ  5               // the daemon allows 50 questions a second and user
#define AGAIN_NS    (3 * NS_PER_S)  // for the second press of e
#define MESSAGE_NS  (10 * NS_PER_S) // a message makes room for the keys' names
#define MESSAGE_MAX TALK_WHY

struct top {
    struct ctl *c;
    Actd__V1__ControlReply *last; // shown
    struct top_view view;
    char message[MESSAGE_MAX], lost[TALK_WHY];
    ns_t message_ns, asked_estop_ns, lost_ns;
    bool was_lost, over;
    struct canvas canvas;
    char bytes[CANVAS_BYTES];
};

static void say(struct top *t, enum style style, const char *text)
{
    snprintf(t->message, sizeof t->message, "%s", text);
    t->view.message_style = style;
    t->message_ns = clock_now_ns();
}

// An answer with a status takes the place of the last one.
static void take(struct top *t, Actd__V1__ControlReply *r)
{
    char text[128];
    bool again = t->last && r->status->ticks < t->last->status->ticks;

    if (t->was_lost || again) {
        snprintf(text, sizeof text, "connected again after %.0f s%s",
                 t->was_lost ? (double)(clock_now_ns() - t->lost_ns) / NS_PER_S : 0.0,
                 again ? ": actd was restarted" : "");
        if (t->last)
            say(t, GOOD, text);
        t->was_lost = false;
    }
    t->lost[0] = 0;
    if (t->view.paused) {
        ctl_free(r);
        return;
    }
    ctl_free(t->last);
    t->last = r;
    t->view.s = r->status;
}

static void ask(struct top *t)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_STATUS);
    Actd__V1__ControlReply *r;
    char why[TALK_WHY];
    int status;
    status = ctl_try(t->c, &q, &r, why);
    if (!status && r->status) {
        take(t, r);
        return;
    }
    if (!status)
        snprintf(why, sizeof why, "%s",
                 *ctl_sentence(r) ? ctl_sentence(r) : "the daemon gave no status");
    ctl_free(r);
    if (!t->was_lost)
        t->lost_ns = clock_now_ns();
    t->was_lost = true;
    snprintf(t->lost, sizeof t->lost, "no answer for %.0f s, trying again: %.*s",
             (double)(clock_now_ns() - t->lost_ns) / NS_PER_S, (int)sizeof why - 64, why);
}

// Acting has a conversation of its own: that of the view may wait for an answer, or be
// closed.
static void act(struct top *t, Actd__V1__Verb verb, const char *what)
{
    Actd__V1__ControlRequest q = ctl_question(verb);
    Actd__V1__ControlReply *r = NULL;
    struct ctl once = *t->c;
    char why[TALK_WHY], text[MESSAGE_MAX];
    int status;

    once.talk.fd = -1;
    status = ctl_try(&once, &q, &r, why);
    if (!status) {
        snprintf(why, sizeof why, "%s", ctl_sentence(r));
        status = ctl_status(&once, r);
    }
    snprintf(text, sizeof text, "%s%s%s%.*s", what, status ? ": NOT DONE" : "",
             *why ? ": " : "", (int)sizeof why - 64, why);
    say(t, status ? BAD : GOOD, text);
    ctl_free(r);
    if (once.talk.fd >= 0)
        talk_close(&once.talk);
}

// The question whether to stop everything is on the screen exactly as long as e answers
// it: another key, or 3 s, take both away. So e, something, e asks anew.
static void unask_estop(struct top *t, const char *why)
{
    if (t->asked_estop_ns)
        say(t, WARN, why);
    t->asked_estop_ns = 0;
}

// What the picture says may be old, so ESTOP in it is told, and asked about all the same.
static void on_estop_key(struct top *t)
{
    bool latched = t->view.s && t->view.s->mode == ACTD__V1__MODE__MODE_ESTOP;

    if (t->asked_estop_ns) {
        t->asked_estop_ns = 0;
        act(t, ACTD__V1__VERB__VERB_ESTOP, "e-stop");
        return;
    }
    say(t, BAD,
        latched ? "It is in ESTOP already. Press e again within 3 s to send it once more"
                : "e-stop? Press e again within 3 s, any other key cancels");
    t->asked_estop_ns = clock_now_ns();
}

static void look_at_time(struct top *t)
{
    ns_t now = clock_now_ns();

    if (t->asked_estop_ns && now - t->asked_estop_ns >= AGAIN_NS)
        unask_estop(t, "e-stop NOT sent: e was not pressed again within 3 s");
    if (t->message_ns && now - t->message_ns > MESSAGE_NS)
        t->message[0] = 0;
}

static void on_key(struct top *t, int key)
{
    int joints = t->view.s ? (int)t->view.s->n_joints : 0;

    look_at_time(t);
    if (key != 'e')
        unask_estop(t, "e-stop NOT sent: another key cancelled it");
    switch (key) {
    case -1:
    case 'q':
    case 4: // Ctrl-D
        t->over = true;
        break;
    case ' ':
        t->view.paused = !t->view.paused;
        break;
    case 's':
        act(t, ACTD__V1__VERB__VERB_STOP, "stop");
        break;
    case 'e':
        on_estop_key(t);
        break;
    case '?':
        t->view.help = !t->view.help;
        break;
    case 'j':
        t->view.first_joint += t->view.first_joint < joints - 1;
        break;
    case 'k':
        t->view.first_joint -= t->view.first_joint > 0;
        break;
    default:
        break;
    }
}

static size_t draw(struct top *t, bool ansi)
{
    term_size(&t->canvas.rows, &t->canvas.columns);
    canvas_clear(&t->canvas, t->canvas.rows, t->canvas.columns);
    look_at_time(t);
    t->view.message = t->message;
    t->view.lost = t->lost;
    t->view.socket = t->c->path;
    top_draw(&t->canvas, &t->view);
    return canvas_print(&t->canvas, ansi, t->c->colour, t->bytes, sizeof t->bytes);
}

// Keys and new sizes until the next question is due.
static void wait_until(struct top *t, ns_t due)
{
    do {
        ns_t left = due - clock_now_ns();
        int key = term_key(left > 0 ? (int)(left / NS_PER_MS + 1) : 0);
        if (key)
            on_key(t, key);
        if (term_write(t->bytes, draw(t, true)) < 0)
            t->over = true;
    } while (!t->over && clock_now_ns() < due);
}

static int live(struct top *t)
{
    ns_t period = clock_period_ns(t->c->hz > 0 ? t->c->hz : DEFAULT_HZ);
    ns_t due = clock_now_ns();
    char why[TALK_WHY];

    if (term_start() < 0)
        return ctl_fail(t->c, CTL_USAGE, "top wants a terminal to show itself on");
    t->view.keys = true;
    while (!t->over) {
        ask(t);
        if (term_write(t->bytes, draw(t, true)) < 0)
            break;
        due += period;
        if (due <
            clock_now_ns()) // suspended, or the daemon was slow: no questions to catch up
            due = clock_now_ns();
        wait_until(t, due);
    }
    term_end();
    if (t->was_lost) {
        snprintf(why, sizeof why, "%s", t->lost);
        return ctl_fail(t->c, CTL_NO_DAEMON, why);
    }
    return CTL_OK;
}

static int once(struct top *t)
{
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_STATUS);
    int status;
    status = ctl_ask(t->c, &q, &t->last);
    if (status)
        return status;
    status = ctl_tell(t->c, t->last);
    if (!status && !t->last->status)
        return ctl_fail(t->c, CTL_PROTOCOL, "the daemon's answer has no status in it");
    t->view.s = t->last->status;
    if (!status && !t->c->json && term_write(t->bytes, draw(t, false)) < 0)
        return CTL_REFUSED;
    return status;
}

int top_main(struct ctl *c)
{
    struct top *t = calloc(1, sizeof *t);
    Actd__V1__ControlRequest q = ctl_question(ACTD__V1__VERB__VERB_STATUS);
    Actd__V1__ControlReply *r;
    int status;

    if (!t)
        return ctl_fail(c, CTL_REFUSED, "out of memory");
    t->c = c;
    if (c->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
        status = once(t);
    } else {
        // A wrong path or a missing permission is told before the screen is taken.
        status = ctl_ask(c, &q, &r);
        if (!status)
            status = r->status ? CTL_OK : ctl_tell(c, r);
        ctl_free(r);
        if (!status)
            status = live(t);
    }
    ctl_free(t->last);
    free(t);
    return status;
}
