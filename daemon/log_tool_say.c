// log_tool_say: what `actd log info` found, for people.
#include "daemon/log_tool_impl.h"

#include <string.h>

#include "daemon/clock.h"
#include "daemon/table.h"

static const char *level_name(int level)
{
    static const char *const name[] = {"", "debug", "info", "warning", "error", "fatal"};

    return level >= 0 && level < 6 ? name[level] : "";
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / (double)NS_PER_S : 0;
}

static void fact(struct table *t, const struct logbook *b, const char *key,
                 const char *says)
{
    const char *value = logbook_fact(b, key);
    char line[400];

    if (!value || !*value)
        return;
    snprintf(line, sizeof line, "%s", value);
    for (char *p = line; *p; p++)
        if (*p == '\n')
            *p = ' ';
    table_row(t, "%s\t%s", says, line);
}

static void head(const struct log_summary *s, struct table *t)
{
    char from[40], to[40], size[24];
    uint64_t bytes = 0;

    for (int i = 0; i < logbook_files(s->book); i++)
        bytes += mcap_file_bytes(logbook_reader(s->book, i));
    log_size(bytes, size);
    log_utc(s->start_ns, from);
    log_utc(s->end_ns, to);
    if (s->messages)
        table_row(t, "recorded\t%s to %s UTC, %.1f s", from, to,
                  seconds(s->start_ns, s->end_ns));
    table_row(t, "holds\t%llu message%s in %d file%s, %s",
              (unsigned long long)s->messages, PLURAL(s->messages),
              logbook_files(s->book), PLURAL(logbook_files(s->book)), size);
    table_row(t, "written by\t%s", mcap_library(logbook_reader(s->book, 0)));
    fact(t, s->book, "version", "version");
    fact(t, s->book, "instance", "instance");
    fact(t, s->book, "run_id", "run");
    fact(t, s->book, "config_file", "configuration");
    fact(t, s->book, "control_hz", "control Hz");
    fact(t, s->book, "joints", "joints");
    fact(t, s->book, "cameras", "cameras");
    fact(t, s->book, "cpu", "CPU");
    fact(t, s->book, "kernels", "kernels");
    fact(t, s->book, "blas_core", "BLAS kernels");
    fact(t, s->book, "precision", "precision");
    for (int i = 0; i < s->n_seats; i++)
        table_row(t, "policy %u\t%s %.16s", s->seat[i].generation, s->seat[i].name,
                  s->seat[i].digest);
    if (s->ticks)
        table_row(t, "ticks\t%llu, %llu of them more than 1 ms late",
                  (unsigned long long)s->ticks, (unsigned long long)s->late);
    table_print(t, stdout);
}

static void topics(const struct log_summary *s, struct table *t)
{
    printf("\n");
    table_row(t, "topic\tmessages\tper second\tbytes\tmean\tlargest\tschema");
    for (int i = 0; i < s->n_topics; i++) {
        const struct log_topic *p = &s->topic[i];
        double span = seconds(p->first_ns, p->last_ns);
        char all[24], mean[24], largest[24], rate[24] = "-";
        log_size(p->bytes, all);
        log_size(p->messages ? p->bytes / p->messages : 0, mean);
        log_size(p->largest, largest);
        if (p->messages > 1 && span > 0)
            snprintf(rate, sizeof rate, "%.2f", (double)(p->messages - 1) / span);
        table_row(t, "%s\t%llu\t%s\t%s\t%s\t%s\t%s", p->name,
                  (unsigned long long)p->messages, rate, all, mean, largest,
                  *p->schema ? p->schema : p->encoding);
        if (t->n == TABLE_ROWS)
            table_print(t, stdout);
    }
    table_print(t, stdout);
}

static void segments(const struct log_summary *s, struct table *t)
{
    printf("\n");
    table_row(t, "file\tsize\tfrom s\tseconds\tmessages\tstate");
    for (int i = 0; i < logbook_files(s->book); i++) {
        struct mcap_reader *r = logbook_reader(s->book, i);
        const char *why, *path = logbook_path(s->book, i);
        bool whole = mcap_whole(r, &why), any = mcap_message_count(r) > 0;
        char size[24];
        log_size(mcap_file_bytes(r), size);
        table_row(t, "%s\t%s\t%.1f\t%.1f\t%llu\t%s",
                  strrchr(path, '/') ? strrchr(path, '/') + 1 : path, size,
                  any ? seconds(s->start_ns, mcap_start_ns(r)) : 0.0,
                  any ? seconds(mcap_start_ns(r), mcap_end_ns(r)) : 0.0,
                  (unsigned long long)mcap_message_count(r), whole ? "whole" : why);
        if (t->n == TABLE_ROWS)
            table_print(t, stdout);
    }
    table_print(t, stdout);
}

static void events(const struct log_summary *s, struct table *t)
{
    if (s->n_events)
        printf("\nwarnings, errors, marks\n");
    for (int i = 0; i < s->n_events; i++) {
        const struct log_event *e = &s->event[i];
        table_row(t, "%.3f s\t%s\t%s\t%s", seconds(s->start_ns, e->log_ns),
                  level_name(e->level), e->name, e->text);
    }
    table_print(t, stdout);
    if (s->more_events)
        printf("  and %d more: actd log cat LOG --topic /events\n", s->more_events);
}

void log_say(const struct log_summary *s)
{
    static struct table t;

    head(s, &t);
    segments(s, &t);
    topics(s, &t);
    events(s, &t);
    if (log_summary_damaged(s))
        printf("\ndamage: %s\n`actd log recover FILE` saves what can be saved.\n",
               logbook_damage(s->book)[0] ? logbook_damage(s->book)
                                          : "some messages could not be read, see above");
}
