// log_tool_json: what `actd log info` found, for programs.
#include "daemon/log_tool_impl.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// Text of a file may be no UTF-8, which jansson refuses.
static json_t *text(const char *s)
{
    json_t *j = json_string(s);
    char *copy;

    if (j || !(copy = strdup(s)))
        return j;
    for (char *p = copy; *p; p++)
        if (*p & 0x80)
            *p = '?';
    j = json_string(copy);
    free(copy);
    return j;
}

static json_t *number(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *files(const struct log_summary *s)
{
    json_t *all = json_array();

    for (int i = 0; i < logbook_files(s->book); i++) {
        struct mcap_reader *r = logbook_reader(s->book, i);
        const char *why;
        bool whole = mcap_whole(r, &why);
        json_array_append_new(
            all,
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:b, s:o}", "path",
                      text(logbook_path(s->book, i)), "bytes", number(mcap_file_bytes(r)),
                      "messages", number(mcap_message_count(r)), "start_ns",
                      number(mcap_start_ns(r)), "end_ns", number(mcap_end_ns(r)),
                      "chunks", mcap_chunks(r), "whole", whole, "why", text(why)));
    }
    return all;
}

static json_t *topics(const struct log_summary *s)
{
    json_t *all = json_object();

    for (int i = 0; i < s->n_topics; i++) {
        const struct log_topic *t = &s->topic[i];
        char *name = strdup(t->name);
        for (char *p = name; p && *p; p++)
            if (*p & 0x80)
                *p = '?';
        if (name)
            json_object_set_new(all, name,
                                json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                                          "messages", number(t->messages), "bytes",
                                          number(t->bytes), "largest", number(t->largest),
                                          "first_ns", number(t->first_ns), "last_ns",
                                          number(t->last_ns), "schema", text(t->schema),
                                          "encoding", text(t->encoding)));
        free(name);
    }
    return all;
}

static json_t *facts(const struct log_summary *s)
{
    static const char *const key[] = {
        "version",        "exe_sha256",    "compiler",   "instance",
        "run_id",         "config_file",   "cpu",        "kernels",
        "precision",      "blas_core",     "mxcsr",      "base_ns",
        "joints",         "cameras",       "control_hz", "rows",
        "keyframe_build", "config",        "flags",      "config_sha256",
        "policy_sha256",  "weights_sha256"};
    json_t *all = json_object();

    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        if (logbook_fact(s->book, key[i]))
            json_object_set_new(all, key[i], text(logbook_fact(s->book, key[i])));
    return all;
}

static json_t *events(const struct log_summary *s)
{
    json_t *all = json_array();

    for (int i = 0; i < s->n_events; i++)
        json_array_append_new(
            all, json_pack("{s:o, s:i, s:o, s:o}", "log_ns", number(s->event[i].log_ns),
                           "level", s->event[i].level, "name", text(s->event[i].name),
                           "text", text(s->event[i].text)));
    return all;
}

static json_t *seats(const struct log_summary *s)
{
    json_t *all = json_array();

    for (int i = 0; i < s->n_seats; i++)
        json_array_append_new(all, json_pack("{s:i, s:o, s:o}", "generation",
                                             (int)s->seat[i].generation, "name",
                                             text(s->seat[i].name), "digest",
                                             text(s->seat[i].digest)));
    return all;
}

int log_say_json(const struct log_summary *s)
{
    json_t *all = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}",
        "start_ns", number(s->start_ns), "end_ns", number(s->end_ns), "messages",
        number(s->messages), "bytes", number(s->bytes), "files", files(s), "topics",
        topics(s), "damaged", log_summary_damaged(s), "damage",
        text(logbook_damage(s->book)), "unreadable", number(s->unread), "ticks",
        number(s->ticks), "late_ticks", number(s->late), "metadata", facts(s), "policies",
        seats(s), "events", events(s), "more_events", s->more_events);

    if (!all)
        return -ENOMEM;
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return 0;
}
