// What a report is made of: what report_scan.c gathers from a recording, in memory that does not
// grow with its length, and who writes which part of the page. Nobody else includes this.
#ifndef ACTD_REPORT_IMPL_H
#define ACTD_REPORT_IMPL_H

#include "daemon/codec.h"
#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/logbook.h"
#include "daemon/record_codec.h"
#include "daemon/report.h"
#include "daemon/svg.h"

#define REPORT_SPANS   2000
#define REPORT_SEATS   16
#define REPORT_STREAMS (1 + POLICY_MAX_CAMERAS)
#define REPORT_RECENT  256 // joint samples whose capture times are remembered

struct report_joint {
    char name[CONFIG_NAME];
    bool known; // to the configuration
    double min, max, velocity;
    struct svg_curve measured, target, commanded, speed;
    uint64_t limits[GUARD_LIMITS]; // ticks in which each acted
    uint8_t acted[SVG_COLUMNS];
    double seam, seam_s;     // the largest jump at a chunk change, and when
    double follow, follow_s; // likewise: measured against the command before
    double last_commanded;   // NAN = none
};

struct report_span { // of the ladder
    double from_s, to_s;
    enum ladder_state mode;
    enum ladder_reason reason;
    int culprit;
};

struct report_stream { // [0]: joint states, then cameras
    char name[CONFIG_NAME];
    uint64_t messages, outcome[TAPE_NONE + 1], superseded, several_parts, not_kept;
    uint64_t verdict[CODEC_VERDICTS];
    ns_t first_ns, last_ns; // accepted
    struct histogram age;   // when it was used
    struct svg_curve oldest;
};

struct report_seat {
    uint32_t generation;
    char name[128], digest[72], directory[256];
    double since_s;
};

struct report {
    struct logbook *book;
    struct config cfg;
    bool configured;                  // cfg holds the robot's
    struct config_error config_error; // why not
    uint64_t start_ns, end_ns;
    double seconds;
    int joints, streams;
    struct report_joint *joint; // (joints)
    struct report_stream stream[REPORT_STREAMS];
    int spans;
    uint64_t spans_lost;
    struct report_span span[REPORT_SPANS];
    double in_mode_s[LADDER_STATES];
    int seats;
    struct report_seat seat[REPORT_SEATS];

    // Ticks.
    uint64_t ticks, skipped, unrecorded, commands, lost_commands, no_room, stalls, late;
    uint64_t last_tick, last_lost;
    uint32_t first_stalls;
    ns_t last_tick_ns, period_ns;
    struct histogram lateness, work, latency, inference;
    struct svg_curve late_ms, work_ms, latency_ms;
    uint8_t chunk_seen[SVG_COLUMNS], seat_seen[SVG_COLUMNS];

    // Chunks, inputs.
    uint64_t chunks, inputs, last_input, inputs_missing;
    ns_t wall_set_ns;
    uint64_t wall_sets;
    struct {
        uint64_t number;
        ns_t capture_ns;
    } recent[REPORT_RECENT];
    uint64_t levels[8]; // of events
    uint64_t damaged;   // messages that could not be read
};

// Opens the cursor of a topic over all of the log; one over nothing when the topic is missing.
struct report_cursor {
    struct logbook_cursor *c;
    struct mcap_message m;
    bool there; // m is the next one
};
int report_cursor_open(struct report_cursor *c, struct report *r, const char *topic,
                       struct mcap_error *err);
void report_cursor_next(struct report_cursor *c, struct report *r);
void report_cursor_close(struct report_cursor *c);

double report_at_s(const struct report *r, uint64_t log_ns); // since the beginning
int report_column(const struct report *r, uint64_t log_ns);

// 0 or -errno with err.
int report_scan(struct report *r, struct mcap_error *err);              // report_scan.c
int report_scan_plain(struct report *r, struct mcap_error *err);        // report_plain.c
void report_scan_input(struct report *r, const struct mcap_message *m); // report_input.c
void report_scan_chunk(struct report *r, const struct tape_chunk *c, uint64_t seen_log_ns,
                       ns_t seen_ns);
int report_scan_seats(struct report *r, struct mcap_error *err);

// report_file.c. 0 or -errno.
int report_to_file(const char *path, void (*write_page)(FILE *f, void *arg), void *arg);

void report_head(FILE *f, const char *title, double seconds); // report_style.c
void report_foot(FILE *f);
void report_top(FILE *f, struct report *r, const struct replay_result *v); // report_top.c
void report_facts(FILE *f, struct report *r);
void report_story(FILE *f, struct report *r);    // report_story.c: ladder
void report_events(FILE *f, struct report *r);   // report_events.c
void report_joints(FILE *f, struct report *r);   // report_joints.c
void report_timing(FILE *f, struct report *r);   // report_timing.c
void report_losses(FILE *f, struct report *r);   // report_losses.c
void report_pictures(FILE *f, struct report *r); // report_picture.c

void report_histogram(FILE *f, const char *title, const struct histogram *h,
                      double budget_ns, const char *what);
struct svg_plot report_plot(const struct report *r, const char *label, const char *unit,
                            int height);
const char *report_mode(enum ladder_state mode); // its class, "m5"

#endif
