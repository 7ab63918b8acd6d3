// logbook: a recording as one thing, whatever the number of its files. Paths are files, or
// directories, of which every .mcap and .mcap.part counts; they must be of one run (metadata run_id)
// and are read in the order of their first messages. Of one directory alone the newest run counts,
// which is said on standard error where there are more. All plain.
#ifndef ACTD_LOGBOOK_H
#define ACTD_LOGBOOK_H

#include "daemon/clock.h"
#include "daemon/mcap_read.h"

struct logbook;

// 0, or -errno with err: names the file and the remedy.
int logbook_open(struct logbook **out, const char *const *path, int n,
                 struct mcap_error *err);
void logbook_close(struct logbook *b); // NULL is fine

int logbook_files(const struct logbook *b);
const char *logbook_path(const struct logbook *b, int file);
struct mcap_reader *logbook_reader(const struct logbook *b, int file);
// Of the metadata record "actd"; NULL = it has no such key. Keys: version, exe_sha256, compiler, flags
// (of the build), instance, run_id, config_file, config (text), config_sha256 (of it), cpu, kernels
// (that computed chunks), blas_core (OpenBLAS's, if it did), precision, mxcsr, base_ns (log time minus CLOCK_MONOTONIC), joints, cameras (names, one a line), control_hz,
// rows, keyframe_build; of the policy that the run begins with: policy_sha256, weights_sha256,
// policy_hz, action_steps, ensemble_coeff, sizes (that frames must have, one a line).
const char *logbook_fact(const struct logbook *b, const char *key);
int64_t logbook_base_ns(const struct logbook *b); // 0 when the log is not ours
bool logbook_ours(const struct logbook *b); // written by actd: has the metadata "actd"
// Damage found so far, one sentence; "" = none.
const char *logbook_damage(const struct logbook *b);

// The messages of one topic in the order in which they were recorded, over all files. Topics of a
// recording: /joint_states, /command, /tick, /input, /policy/chunk, /policy/seat, /events,
// /keyframe, /camera/NAME, /camera/NAME/raw, /undecodable/joint_states, /undecodable/NAME,
// /parts/joint_states, /parts/NAME.
struct logbook_cursor;
int logbook_cursor_new(struct logbook_cursor **out, struct logbook *b, const char *topic,
                       uint64_t from_log_ns, uint64_t to_log_ns /* 0 = to the end */);
void logbook_cursor_free(struct logbook_cursor *c);
// 1, 0 at the end, -errno with err (damage: passed over by the next call).
int logbook_next(struct logbook_cursor *c, struct mcap_message *m,
                 struct mcap_error *err);
// The one message of this topic and log time (frames are found so). *own is malloc'd, the caller's.
// 0, -ENOENT, -errno.
int logbook_find(struct logbook *b, const char *topic, uint64_t log_ns, void **own,
                 size_t *size, struct mcap_error *err);

#endif
