// log_tool_info: `actd log info`. Every message is read once: what is damaged shows, and sizes are
// what they are. Half a gigabyte takes a second or two.
#include "daemon/log_tool_impl.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "actd/v1/record.pb-c.h"
#include "daemon/clock.h"
#include "foxglove/Log.pb-c.h"

static const char help[] =
    "usage: actd log info LOG... [--json]\n"
    "\n"
    "Reads all of a recording and says how long it is, which topics are in it, how many\n"
    "messages, how often and how large, of which run, with which policies, what was lost when\n"
    "it was recorded, and what of it is damaged.\n"
    "\n"
    "      --json   one JSON object instead\n"
    "  -h, --help   this text\n"
    "\n"
    "exit status: 0 whole, 1 unfinished or damaged, 64 usage, 65 no recording, 66 not readable\n";

// What was cut off is told by an ellipsis, and no character is cut in two.
static void shorten(char *text, size_t size)
{
    size_t n = size - sizeof "…";

    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    memcpy(text + n, "…", sizeof "…");
}

// Errors, marks, faults and what the recorder lost are all kept, as long as there is room; other
// warnings fill half of it at most.
static void keep_event(struct log_summary *s, const Foxglove__Log *l, uint64_t log_ns)
{
    bool warning = l->level >= FOXGLOVE__LOG__LEVEL__WARNING,
         mark = strcmp(l->name, "mark") == 0;
    bool first = l->level >= FOXGLOVE__LOG__LEVEL__ERROR ||
                 strcmp(l->name, "fault") == 0 || strcmp(l->name, "record") == 0;
    struct log_event *e = &s->event[s->n_events];

    if (!warning && !mark)
        return;
    if (s->n_events >= (mark || first ? LOG_EVENTS : LOG_EVENTS / 2)) {
        s->more_events++;
        return;
    }
    *e = (struct log_event){.log_ns = log_ns, .level = (int)l->level};
    snprintf(e->name, sizeof e->name, "%s", l->name);
    if (snprintf(e->text, sizeof e->text, "%s", l->message) >= (int)sizeof e->text)
        shorten(e->text, sizeof e->text);
    s->n_events++;
}

static void event(struct log_summary *s, const struct mcap_message *m)
{
    Foxglove__Log *l = foxglove__log__unpack(NULL, m->size, m->data);

    if (!l)
        return;
    keep_event(s, l, m->log_ns);
    foxglove__log__free_unpacked(l, NULL);
}

static void seat(struct log_summary *s, const struct mcap_message *m)
{
    Actd__V1__Seat *p = actd__v1__seat__unpack(NULL, m->size, m->data);
    bool known = !p || s->n_seats == sizeof s->seat / sizeof *s->seat;

    for (int i = 0; !known && i < s->n_seats; i++)
        known = s->seat[i].generation == p->generation;
    if (!known) {
        struct log_seat *to = &s->seat[s->n_seats++];
        to->generation = p->generation;
        snprintf(to->name, sizeof to->name, "%s", p->name);
        snprintf(to->digest, sizeof to->digest, "%s", p->digest);
    }
    if (p)
        actd__v1__seat__free_unpacked(p, NULL);
}

static void tick(struct log_summary *s, const struct mcap_message *m)
{
    Actd__V1__Tick *t = actd__v1__tick__unpack(NULL, m->size, m->data);

    s->ticks++;
    if (t && t->lateness_ns > NS_PER_MS)
        s->late++;
    if (t)
        actd__v1__tick__free_unpacked(t, NULL);
}

static struct log_topic *topic_of(struct log_summary *s, const struct mcap_reader *r,
                                  uint16_t channel)
{
    const struct mcap_channel *c = mcap_channel_of(r, channel);
    const struct mcap_schema *schema = c ? mcap_schema_of(r, c->schema) : NULL;

    for (int i = 0; c && i < s->n_topics; i++)
        if (strcmp(s->topic[i].name, c->topic) == 0)
            return &s->topic[i];
    if (!c || s->n_topics == LOG_TOPICS)
        return NULL;
    s->topic[s->n_topics] = (struct log_topic){
        .name = c->topic, .schema = schema ? schema->name : "", .encoding = c->encoding};
    return &s->topic[s->n_topics++];
}

static void count(struct log_summary *s, struct log_topic *t,
                  const struct mcap_message *m)
{
    if (s->messages == 0 || m->log_ns < s->start_ns)
        s->start_ns = m->log_ns;
    if (m->log_ns > s->end_ns)
        s->end_ns = m->log_ns;
    s->messages++;
    s->bytes += m->size;
    if (!t)
        return;
    if (t->messages == 0 || m->log_ns < t->first_ns)
        t->first_ns = m->log_ns;
    if (m->log_ns > t->last_ns)
        t->last_ns = m->log_ns;
    if (m->size > t->largest)
        t->largest = m->size;
    t->messages++;
    t->bytes += m->size;
}

static int read_file(struct log_summary *s, int file, struct mcap_error *err)
{
    struct mcap_reader *r = logbook_reader(s->book, file);
    bool ours = logbook_ours(s->book);
    struct mcap_cursor *c;
    struct mcap_message m;
    int rc;

    for (int i = 0; i < mcap_channels(r); i++) // those without a message, too
        topic_of(s, r, mcap_channel_at(r, i)->id);
    rc = mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0);
    if (rc != 0)
        return rc;
    while ((rc = mcap_next(c, &m, err)) != 0) {
        if (rc == -ENOMEM)
            break;
        if (rc < 0) {
            fprintf(stderr, "%s: %s\n", logbook_path(s->book, file), err->text);
            s->unread++;
            continue;
        }
        struct log_topic *t = topic_of(s, r, m.channel);
        count(s, t, &m);
        if (ours && t && strcmp(t->name, "/events") == 0)
            event(s, &m);
        if (ours && t && strcmp(t->name, "/policy/seat") == 0)
            seat(s, &m);
        if (ours && t && strcmp(t->name, "/tick") == 0)
            tick(s, &m);
    }
    mcap_cursor_free(c);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    const struct log_topic *x = a, *y = b;

    return strcmp(x->name, y->name);
}

// Events come from several threads: a fault's own may lie behind what was said of it.
static int by_time(const void *a, const void *b)
{
    const struct log_event *x = a, *y = b;

    return x->log_ns < y->log_ns ? -1 : x->log_ns > y->log_ns;
}

int log_summary_read(struct log_summary *s, struct mcap_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < logbook_files(s->book); i++)
        rc = read_file(s, i, err);
    if (s->n_topics)
        qsort(s->topic, (size_t)s->n_topics, sizeof *s->topic, by_name);
    if (s->n_events)
        qsort(s->event, (size_t)s->n_events, sizeof *s->event, by_time);
    return rc;
}

bool log_summary_damaged(const struct log_summary *s)
{
    return s->unread > 0 || logbook_damage(s->book)[0] != 0;
}

int log_info(int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", 0, NULL, 'j'}, {"help", 0, NULL, 'h'}, {0}};
    struct mcap_error err = {""};
    struct log_summary *s = NULL;
    bool json = false;
    int rc;

    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (c != 'j')
            return log_usage(help);
        json = true;
    }
    if (optind == argc)
        return log_usage(help);
    s = calloc(1, sizeof *s);
    rc = s ? logbook_open(&s->book, (const char *const *)argv + optind, argc - optind,
                          &err)
           : -ENOMEM;
    if (rc == 0)
        rc = log_summary_read(s, &err);
    if (rc == 0 && json)
        rc = log_say_json(s);
    else if (rc == 0)
        log_say(s);
    if (rc == 0)
        rc = log_summary_damaged(s);
    if (s)
        logbook_close(s->book);
    free(s);
    return rc < 0 ? log_status(rc, &err) : rc;
}
