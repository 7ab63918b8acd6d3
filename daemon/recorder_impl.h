// What the files of the recorder share. One thread, the recorder's, owns all of struct recorder
// but what stands under `lock` and the atomics.
//
//   tape -> recorder_drain.c -> recorder_chunk.c -> recorder_flow.c -> recorder_file.c -> disk
//           messages            three open chunks   file, or memory    one segment
//                                                   (recorder_hold.c)
#ifndef ACTD_RECORDER_IMPL_H
#define ACTD_RECORDER_IMPL_H

#include <pthread.h>

#include "daemon/mcap_write.h"
#include "daemon/recorder.h"

#define RECORDER_POLL_NS     (5 * NS_PER_MS)
#define RECORDER_CHUNK_BYTES (1u << 20)
#define RECORDER_CHUNK_NS    (400 * NS_PER_MS)
#define RECORDER_SYNC_NS     NS_PER_S
#define RECORDER_STOP_NS     (3 * NS_PER_S)
#define RECORDER_RETRY_NS    NS_PER_S // after a failure; doubled each time, up to
#define RECORDER_RETRY_MOST  (30 * NS_PER_S)
#define RECORDER_HUNG_NS     (2 * NS_PER_S) // a disk that takes longer is said to be ill
#define RECORDER_NAME        200            // bytes of a file's name, .part and all
#define RECORDER_SEATS       16             // policies remembered
#define RECORDER_PART        ".part"

// ---- channels (recorder_channel.c) -----------------------------------------------------------

enum recorder_topic {
    TOPIC_TICK = 1,
    TOPIC_INPUT,
    TOPIC_CHUNK,
    TOPIC_SEAT,
    TOPIC_EVENT,
    TOPIC_COMMAND,
    TOPIC_KEYFRAME,
    TOPIC_JOINTS,
    TOPIC_JOINTS_UNDECODABLE,
    TOPIC_CAMERAS // three per camera: see recorder_topic_camera
};
#define RECORDER_TOPICS  (TOPIC_CAMERAS + 3 * POLICY_MAX_CAMERAS)
#define RECORDER_SCHEMAS 10

struct recorder_channels {
    struct mcap_schema schema[RECORDER_SCHEMAS];  // [i].id = i, from 1
    struct mcap_channel channel[RECORDER_TOPICS]; // [i].id = i, from 1; topic NULL = none
    char *topic[RECORDER_TOPICS];                 // of cameras, own
};
// 0, -ENOMEM, or -ENOENT: a schema is not in this program.
int recorder_channels_init(struct recorder_channels *c, const struct recorder_facts *f);
void recorder_channels_free(struct recorder_channels *c);
int recorder_topic_camera(int camera, enum tape_form form);

// ---- facts (recorder_facts.c) ----------------------------------------------------------------

#define RECORDER_FACTS 24
struct recorder_own { // copies of struct recorder_facts, and what is found out beside
    char *text[RECORDER_FACTS];
    struct mcap_pair pair[RECORDER_FACTS];
    int n;
    char *instance; // as it stands in names of files
    char *library;
};
int recorder_own_init(struct recorder_own *o, const struct recorder_facts *f,
                      int64_t base_ns);
void recorder_own_free(struct recorder_own *o);

// ---- one file (recorder_file.c, recorder_name.c, recorder_disk.c) ------------------------------

struct recorder_file {
    int dir, fd; // -1
    char name[RECORDER_NAME];
    struct mcap_writer *writer; // NULL = no file is open
    bool fault, dirty;
    ns_t begun_ns, synced_ns;
    uint64_t repeated;           // messages that every file begins with
    bool known[RECORDER_TOPICS]; // channels that its summary knows
    bool known_schema[RECORDER_SCHEMAS];
    const struct recorder_disk *disk;
    _Atomic int64_t *busy_since_ns; // of the disk; 0 = idle
    ns_t slowest_ns;
};

int recorder_directory(const char *path); // made if it is missing. Descriptor or -errno
void recorder_instance_name(char *out, size_t size, const char *instance);
// INSTANCE-20261129T201500Z-0001[-fault].mcap[.part]. Is this one of them? Its tail then:
enum recorder_name_kind { NAME_OTHER, NAME_WHOLE, NAME_FAULT, NAME_PART };
enum recorder_name_kind recorder_name_kind(const char *name, const char *instance);
// Without .part; wall_ns since 1970.
int recorder_name(char out[RECORDER_NAME], const char *instance, int64_t wall_ns,
                  unsigned number);
void recorder_name_fault(char out[RECORDER_NAME], const char *name);

extern const struct recorder_disk recorder_real_disk;

// f->disk and f->busy_since_ns are there. path: the directory. 0 or -errno with *what it was that
// failed; then no file is open.
int recorder_file_begin(struct recorder_file *f, const char *path, const char *name,
                        const struct recorder_own *own, ns_t now, const char **what);
int recorder_file_put(struct recorder_file *f, const struct recorder_channels *c,
                      const struct mcap_chunk *chunk);
void recorder_file_fault(struct recorder_file *f); // its name says so from now on
// Syncs when that is due. Is the file still there? 0 or -errno.
int recorder_file_look(struct recorder_file *f, ns_t now, const char **what);
// Summary, sync, rename; closed in any case. After a failure before (rc != 0) the bytes behind the
// last good record are cut off first. 0, or -errno: it stays a .part.
int recorder_file_end(struct recorder_file *f, int rc, const char **what);

// ---- room (recorder_room.c) --------------------------------------------------------------------

struct recorder_room {
    uint64_t keep_free, most;
    uint64_t written;  // by the file being written
    const char *spare; // its name
    uint64_t removed;  // out: how many files went
    uint64_t kept;     // out: bytes of finished files
};
// 0, -ENOSPC: there is less than keep_free, and nothing left that may go; or another -errno.
int recorder_room_make(struct recorder_room *q, const struct recorder_disk *disk, int dir,
                       const char *instance);

// ---- memory before the trigger (recorder_hold.c) -----------------------------------------------

struct recorder_hold {
    struct recorder_held {
        struct mcap_chunk *chunk;
        ns_t at_ns; // when it was finished
    } * ring;
    size_t first, n, capacity;
    uint64_t bytes;
};
bool recorder_hold_fits(const struct recorder_hold *h, const struct mcap_chunk *c,
                        size_t most);
// Takes the chunk; those go that are older than before_ns, or too many for `most` bytes. It goes
// itself when it is too big, or there is no memory.
void recorder_hold_put(struct recorder_hold *h, struct mcap_chunk *c, ns_t now,
                       ns_t before_ns, size_t most);
const struct mcap_chunk *
recorder_hold_first(const struct recorder_hold *h); // NULL = empty
void recorder_hold_drop(struct recorder_hold *h);   // the first
void recorder_hold_free(struct recorder_hold *h);

// ---- what is left from runs that were killed (recorder_rescue.c) -------------------------------

struct recorder_rescue;
// A thread that recovers the .part files that nobody holds; NULL when there is no memory for it.
struct recorder_rescue *recorder_rescue_start(const char *directory,
                                              const char *instance);
// Waits no longer than until_ns; what is not done then ends by itself. NULL is fine.
void recorder_rescue_stop(struct recorder_rescue *s, ns_t until_ns);
bool recorder_rescue_done(struct recorder_rescue *s);
// One pass, in this thread: for tests. Files saved.
int recorder_rescue_now(const char *directory, const char *instance);

// ---- open chunks (recorder_chunk.c) --------------------------------------------------------------

enum recorder_kind { KIND_SMALL, KIND_JPEG, KIND_RAW };
#define RECORDER_KINDS 3

struct recorder_open {
    struct mcap_build *build;
    ns_t oldest_ns; // at_ns of its first message
    bool said[RECORDER_TOPICS];
    bool said_schema[RECORDER_SCHEMAS];
};

// ---- trouble (recorder_trouble.c) ----------------------------------------------------------------

struct recorder_losses {
    uint64_t ticks, frames, others;
};
struct recorder_trouble {
    bool failing;
    int rc;           // and
    const char *what; // that was last said
    ns_t retry_at_ns, backoff_ns, since_ns;
    struct recorder_losses lost;      // since it began
    uint64_t tape_lost[TAPE_CLASSES]; // as was said last
    uint64_t tape_seen[TAPE_CLASSES]; // as was seen last
    ns_t tape_lost_ns, tape_since_ns; // when it lost last, and first; 0 = all is said
};

// ---- all of it -------------------------------------------------------------------------------------

struct recorder_remembered { // a policy
    struct tape_seat seat;
    char *sidecar;
    bool said; // in the file that is open
};

enum { RECORDER_RUNS, RECORDER_DONE, RECORDER_LEFT };

struct recorder {
    struct recorder_config cfg; // pointers in it: not used after recorder_new
    char *directory;
    struct tape *tape;
    int64_t base_ns;
    struct recorder_own own;
    struct recorder_channels channels;
    struct recorder_open open[RECORDER_KINDS];
    uint32_t sequence[RECORDER_TOPICS];
    struct recorder_file file;
    unsigned number; // of the last file
    struct recorder_hold hold;
    struct recorder_trouble trouble;
    struct recorder_rescue *rescue;
    bool rescue_due;
    unsigned char *scratch;
    size_t scratch_size;
    ns_t now_ns;        // of this turn
    ns_t live_until_ns; // trigger mode
    ns_t state_asked_ns, room_seen_ns;
    struct recorder_losses in_file; // messages of the open file: lost with it
    uint64_t room_kept;
    bool fault_pending;       // the next file has it, too
    struct recorder_counts c; // the thread's; copied to `shown`

    _Atomic bool by_hand;
    _Atomic int64_t fault_ns, mark_ns; // 0 = none new
    _Atomic int fault_reason;
    _Atomic int64_t busy_since_ns;

    pthread_mutex_t lock;
    struct recorder_counts shown;
    struct recorder_remembered *seat[RECORDER_SEATS]; // oldest first

    pthread_t thread;
    _Atomic bool stop;
    _Atomic int phase;
};

// recorder_drain.c: what is on the tape becomes messages. Stops early with work left after so many
// bytes, so that a turn ends. True = there is more.
bool recorder_drain(struct recorder *r, uint64_t most_bytes);

// recorder_chunk.c
int recorder_chunk_init(struct recorder *r);
void recorder_chunk_free(struct recorder *r);
void recorder_message(struct recorder *r, enum recorder_kind kind, int topic, ns_t at_ns,
                      int64_t publish_wall_ns, const void *data, size_t size);
void recorder_chunk_close_due(struct recorder *r, bool all);
unsigned char *recorder_scratch(struct recorder *r, size_t size); // NULL = no memory
// An event by ourselves; goes into the open chunk.
void recorder_event(struct recorder *r, ns_t at_ns, enum tape_level level,
                    const char *name, const char *text);
// A chunk with all policies that are remembered; NULL = none, or no memory.
struct mcap_chunk *recorder_seats_chunk(struct recorder *r, ns_t at_ns);
void recorder_seats_new(struct recorder *r); // those the open file does not have yet
void recorder_remember(struct recorder *r, const struct tape_seat *seat, const char *text,
                       size_t n);
void recorder_seats_free(struct recorder *r);

// recorder_flow.c: where finished chunks go.
bool recorder_live(const struct recorder *r);                      // they go to a file
void recorder_chunk_out(struct recorder *r, struct mcap_chunk *c); // takes it
void recorder_flow(struct recorder *r);     // begins, looks after and ends files
void recorder_flow_end(struct recorder *r); // of the run
void recorder_triggers(struct recorder *r); // faults and marks since the last turn

// recorder_trouble.c
void recorder_failed(struct recorder *r, const char *what, int rc);
void recorder_went_well(struct recorder *r);
void recorder_lost_chunk(struct recorder *r, const struct mcap_chunk_facts *f);
void recorder_losses_add(struct recorder_losses *to, const struct mcap_chunk_facts *f);
void recorder_watch_tape(struct recorder *r, bool last);

#endif
