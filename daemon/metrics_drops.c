// metrics_drops: what was not used. The status names a cause in words for people ("front frames
// refused (width 3)"); a label must be the same words for ever, and each that comes up anew is
// one more time series for ever, so that the words become a stream and a short cause here. Those
// that there can be are there from the first scrape on.
#include <stdio.h>
#include <string.h>

#include "daemon/metrics_impl.h"

#define CAUSE 48
#define MOST  256 // twice what a daemon with every camera tells
#define NONE  -1  // of no stream

struct drop {
    int stream; // index in the status, or NONE
    char cause[CAUSE];
    double value;
};

struct drops {
    const Actd__V1__Status *m;
    int n;
    struct drop of[MOST];
};

// Where the words would make a long name, or one that says less.
static const char *const shorter[][2] = {
    {"50 ms late, or the sender's clock moved", "late"},
    {"inference without frame", "inference_no_frame"},
    {"inference cameras too far apart", "inference_skew"},
    {"inference without joint state", "inference_no_joints"},
    {"commands refused by the gate", "commands_refused"},
    {"commands cut off by the monitor", "commands_cut"},
    {"commands too old to send", "commands_too_old"},
    {"sets of this machine's wall clock", "wall_clock_set"},
};

// The first four are those of joint states too.
static const char *const of_stream[] = {"refused", "duplicate", "out_of_order",
                                        "late",    "corrupt",   "superseded"};
static const char *const of_none[] = {
    "chunk_late",          "chunk_out_of_order",   "chunk_too_old",
    "chunk_wrong_shape",   "chunk_not_finite",     "chunk_out_of_range",
    "chunk_ring_full",     "inference_no_frame",   "inference_skew",
    "inference_no_joints", "inference_failed",     "targets_refused",
    "commands_refused",    "commands_dropped",     "commands_not_sent",
    "commands_superseded", "commands_too_old",     "commands_cut",
    "wall_clock_set",      "black_box_not_written"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static bool is_joints(const Actd__V1__Status *m, int stream)
{
    return stream == 0 && strcmp(m->streams[0]->name, "joints") == 0;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Letters, digits, and one underscore for whatever is between them.
static void slug(char out[CAUSE], const char *text, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n && k < CAUSE - 1; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];

        if (is_word(c))
            out[k++] = c;
        else if (k > 0 && out[k - 1] != '_')
            out[k++] = '_';
    }
    while (k > 0 && out[k - 1] == '_')
        k--;
    out[k] = '\0';
    if (k == 0)
        snprintf(out, CAUSE, "other");
}

// Words without the " (why the last one was)" behind them.
static void cause_of(char out[CAUSE], const char *words)
{
    const char *why = strstr(words, " (");
    size_t n = why ? (size_t)(why - words) : strlen(words);

    for (int i = 0; i < COUNT(shorter); i++)
        if (strlen(shorter[i][0]) == n && strncmp(words, shorter[i][0], n) == 0) {
            snprintf(out, CAUSE, "%s", shorter[i][1]);
            return;
        }
    slug(out, words, n);
}

// What is behind "front frames " or "joint states "; NULL = not of this stream.
static const char *words_of(const Actd__V1__Status *m, int stream, const char *name)
{
    const char *who = is_joints(m, stream) ? "joint states" : m->streams[stream]->name;
    const char *what = is_joints(m, stream) ? " " : " frames ";
    size_t n = strlen(who);

    if (strncmp(name, who, n) != 0 || strncmp(name + n, what, strlen(what)) != 0)
        return NULL;
    return name + n + strlen(what);
}

static void add(struct drops *d, int stream, const char cause[CAUSE], double value)
{
    int i = 0;

    while (i < d->n && (d->of[i].stream != stream || strcmp(d->of[i].cause, cause) != 0))
        i++;
    if (i == MOST)
        return;
    if (i == d->n) {
        d->n++;
        d->of[i] = (struct drop){.stream = stream};
        snprintf(d->of[i].cause, CAUSE, "%s", cause);
    }
    d->of[i].value += value;
}

static void add_counter(struct drops *d, const Actd__V1__Counter *c)
{
    int stream = NONE;
    const char *words = c->name, *rest;
    char cause[CAUSE];

    for (size_t i = 0; i < d->m->n_streams && stream == NONE; i++)
        if ((rest = words_of(d->m, (int)i, c->name)) != NULL) {
            stream = (int)i;
            words = rest;
        }
    cause_of(cause, words);
    add(d, stream, cause, (double)c->value);
}

static void add_known(struct drops *d)
{
    for (size_t i = 0; i < d->m->n_streams; i++)
        for (int k = 0; k < (is_joints(d->m, (int)i) ? 4 : COUNT(of_stream)); k++)
            add(d, (int)i, of_stream[k], 0);
    for (int k = 0; k < COUNT(of_none); k++)
        add(d, NONE, of_none[k], 0);
}

void metrics_drops(struct metrics_text *t, const Actd__V1__Status *m)
{
    struct drops d = {.m = m};

    add_known(&d);
    for (size_t i = 0; i < m->n_drops; i++)
        add_counter(&d, m->drops[i]);
    metrics_family(t, "actd_drops_total", "counter",
                   "What was not used, by stream and cause; the log says more.");
    for (int i = 0; i < d.n; i++) {
        const struct drop *x = &d.of[i];
        const struct metrics_label labels[] = {
            {"stream", x->stream == NONE ? "" : metrics_stream(m, x->stream)},
            {"cause", x->cause},
            {NULL, NULL}};

        metrics_sample(t, "", labels, x->value);
    }
}
