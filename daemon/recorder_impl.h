// What the files of the recorder share. One thread, the recorder's, owns all of struct recorder
// but what stands under `lock` and the atomics.
//
//   tape -> recorder_drain.c -> recorder_chunk.c -> recorder_flow.c -> recorder_file.c -> disk
//           messages            three open chunks   file, or memory    one segment
//                                                   (recorder_hold.c)
#ifndef ACTD_RECORDER_IMPL_H
#define ACTD_RECORDER_IMPL_H

#include <pthread.h>

#include "daemon/recorder_parts.h"

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
    bool owed; // likewise: what is in memory is to be in a file, and is in none yet
    ns_t state_asked_ns, room_seen_ns;
    struct recorder_losses in_file; // messages of the open file: lost with it
    uint64_t room_kept;
    bool fault_pending; // the next file has it, too
    ns_t last_fault_ns; // 0 = none
    char previous
        [RECORDER_NAME]; // the segment before, whole; "" = none, or it has a fault anyhow
    ns_t previous_end_ns;
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
