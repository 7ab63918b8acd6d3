// The parts that the recorder is made of and that know nothing of it: channels, facts, one file and
// its name, room, memory, rescue. Each has its .c file; all plain.
#ifndef ACTD_RECORDER_PARTS_H
#define ACTD_RECORDER_PARTS_H

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

// Of a thread that may be left behind.
enum { RECORDER_RUNS, RECORDER_DONE, RECORDER_LEFT };

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
    TOPIC_JOINTS_PARTS,
    TOPIC_CAMERAS // four per camera: see recorder_topic_camera
};
#define RECORDER_TOPICS  (TOPIC_CAMERAS + 4 * POLICY_MAX_CAMERAS)
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

#define RECORDER_FACTS 32
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
    uint64_t written; // by the file being written, whose .part is not looked at
    uint64_t removed; // out: how many files went
    uint64_t kept;    // out: bytes of finished files
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

#endif
