// What the files of log_tool share.
//
//   log_tool.c          which of the four, and what all of them need
//   log_tool_info.c     info: reads everything once, then says it (log_tool_say.c, _json.c)
//   log_tool_recover.c  recover
//   log_tool_cut.c      cut
//   log_tool_cat.c      cat, with log_tool_proto.c for what is in a message
#ifndef ACTD_LOG_TOOL_IMPL_H
#define ACTD_LOG_TOOL_IMPL_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/logbook.h"

int log_info(int argc, char **argv);
int log_recover(int argc, char **argv);
int log_cut(int argc, char **argv);
int log_cat(int argc, char **argv);

int log_usage(const char *help); // to stderr; EX_USAGE
int log_status(int rc,
               const struct mcap_error *err);    // says it; the exit status for -errno
bool log_seconds(const char *text, double *out); // a finite number
void log_catch_signals(void); // Ctrl-C removes what is being written, then ends
uint64_t log_book_start_ns(const struct logbook *b); // of all files; 0 without a message
uint64_t log_book_end_ns(const struct logbook *b);
// Seconds after the beginning of the recording; before it: the beginning.
uint64_t log_at_ns(const struct logbook *b, double seconds);
void log_size(uint64_t n, char out[24]); // "12.3 MB"
void log_utc(uint64_t ns, char out[40]); // 2026-11-30 01:02:03.456

// ---- what is in a message -----------------------------------------------------------------------
struct log_types; // of one schema
// NULL: the schema is no FileDescriptorSet with that type in it, or there is no memory.
struct log_types *log_types_new(const struct mcap_schema *s);
void log_types_free(struct log_types *t); // NULL is fine
// As JSON: fields that are there, in the order of their numbers; enums by name; bytes by their
// number when there are more than 32, else base64. false: it is no such message; what was written to
// f until then is of no use.
bool log_types_print(const struct log_types *t, const void *data, size_t size, FILE *f);
void log_print_string(FILE *f, const char *s, size_t n); // with quotes, as JSON wants it
void log_print_base64(FILE *f, const void *data, size_t size);

// ---- info ---------------------------------------------------------------------------------------
#define LOG_TOPICS 512
#define LOG_EVENTS 24

struct log_summary {
    struct logbook *book;
    struct log_topic {
        const char *name, *schema, *encoding;
        uint64_t messages, bytes, first_ns, last_ns;
        size_t largest;
    } topic[LOG_TOPICS];
    int n_topics;
    uint64_t messages, bytes, start_ns, end_ns, unread; // unread: places that are damaged
    struct log_event { // warnings and worse, the first ones
        uint64_t log_ns;
        int level;
        char name[24], text[200];
    } event[LOG_EVENTS];
    int n_events, more_events; // more: not kept
    struct log_seat {
        unsigned generation;
        char name[64], digest[80];
    } seat[16];
    int n_seats;
    uint64_t ticks, late; // late: by more than a millisecond
};
int log_summary_read(struct log_summary *s, struct mcap_error *err);
void log_say(const struct log_summary *s);
int log_say_json(const struct log_summary *s); // 0 or -ENOMEM
bool log_summary_damaged(const struct log_summary *s);

#endif
