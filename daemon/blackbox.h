// blackbox: the last 5 s of ticks, always there. The loop writes one record per tick into a fixed
// ring; a fault makes a plain thread write the ring to a file within 100 ms: what was known in
// each tick (inputs latched, conditions), the target before and after each stage, why, and when.
// The file is CSV with a header line, one line per tick, so that anything opens it.
//
// blackbox.c is rt. Plain: blackbox_init.c, blackbox_writer.c (the thread), blackbox_file.c (where
// the file goes and which go away), blackbox_csv.c (what is in it).
//
// Memory, all of it touched at the start: the ring of 6 s and a copy of it, since a disk may take
// longer than a second: 2 x 1.4 MB at 200 Hz and 14 joints, 2 x 28 MB at 2 kHz and 32 joints.
#ifndef ACTD_BLACKBOX_H
#define ACTD_BLACKBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/board.h"

#define BLACKBOX_NS     (5 * NS_PER_S)
#define BLACKBOX_KEEP   20 // files in the directory; the oldest gives way
#define BLACKBOX_NO_AGE INT64_MIN

struct blackbox_joint { // rad, rad/s
    double measured, measured_vel;
    double target, target_vel;       // what the chunks want, before any limit
    double commanded, commanded_vel; // after the guard; as published when `published`
    double seam;                     // jump of the target at a chunk change in this tick
    enum guard_limit limit;
};

struct blackbox_record {
    uint64_t tick;
    ns_t now_ns, lateness_ns, tick_ns; // tick_ns: work, all but this record
    uint64_t conditions;               // LADDER_C_ bits, requests included
    enum ladder_state mode;
    enum ladder_reason reason;
    uint64_t latched; // reasons
    bool degraded, published;
    int gate;              // enum gate_verdict
    uint64_t sequence;     // of the command, 0 = none
    uint64_t joint_number; // which joint sample was latched, 0 = none, and
    ns_t joint_age_ns;     // how old it was, or BLACKBOX_NO_AGE
    ns_t camera_age_ns[POLICY_MAX_CAMERAS]; // BLACKBOX_NO_AGE = no frame yet
    int target_rc;                          // 0, or why there is no target
    uint64_t chunk_id;
    double chunk_row;
    int blended;
    struct blackbox_joint joint[]; // (joints)
};

struct blackbox;

// plain. Room for BLACKBOX_NS of ticks and a second more, so that a dump is not overtaken.
// 0, -EINVAL or -ENOMEM.
int blackbox_new(struct blackbox **out, int joints, int cameras, double control_hz);
void blackbox_free(struct blackbox *b); // after the loop and the writer; NULL is fine

// rt. The record to fill in this tick, all zero. It is the loop's own until the commit.
struct blackbox_record *blackbox_tick(struct blackbox *b);
// rt. It is filled. fault: a reason that has just come up, NONE = nothing to dump.
void blackbox_commit(struct blackbox *b, enum ladder_reason fault);
// Any thread. A dump for a reason that the loop can not give itself (LOOP_STALLED); its tick is
// the last one that was committed.
void blackbox_trigger(struct blackbox *b, enum ladder_reason fault);

// Any thread. Records committed so far; record n is number n, from 1.
uint64_t blackbox_count(const struct blackbox *b);
size_t blackbox_record_bytes(const struct blackbox *b);
// Any thread. Copies record `number` into out (blackbox_record_bytes); false when there is none
// or it is being overwritten: out is then garbage.
bool blackbox_at(const struct blackbox *b, uint64_t number, struct blackbox_record *out);
// The same for the record `index` back from the newest (0).
bool blackbox_read(const struct blackbox *b, uint64_t index, struct blackbox_record *out);

struct blackbox_writer_config { // copied by the start
    const char *directory;      // made if it is missing, 0750
    const char *instance;
    const char *const *joint;                             // (joints) names
    const char *const *camera;                            // (cameras)
    int keep;                                             // files; 0 = BLACKBOX_KEEP
    ssize_t (*write)(int fd, const void *data, size_t n); // NULL = write(2); for tests
};
struct blackbox_counts {
    uint64_t dumped, failed;
    uint64_t superseded;  // came up while another waited, whose file has them as well
    char last_path[1024]; // "" before the first
    char last_error[512]; // what and the remedy; "" when the last one went well
};
struct blackbox_writer;
// plain. The thread that writes; class plain. 0 or -errno; a directory that can not be made is
// not an error of the start: it is said, counted, and tried again at each fault. A fault that
// comes up while a file is written gets a file of its own, four in a row at once, then one a
// second; those that come up meanwhile are in it too.
int blackbox_writer_start(struct blackbox_writer **out, struct blackbox *b,
                          const struct blackbox_writer_config *cfg);
// plain. Writes what is still due, for 3 s at most: a disk that hangs longer keeps the writer's
// memory and its thread, but not b. NULL is fine.
void blackbox_writer_stop(struct blackbox_writer *w);
void blackbox_writer_counts(struct blackbox_writer *w,
                            struct blackbox_counts *out); // plain

#endif
