// The inside of status: what is measured (status.c, status_count.c, status_judge.c, status_live.c),
// how it becomes a message (status_pack.c, status_record.c) and what is said of it to people (status_say.c).
#ifndef ACTD_STATUS_IMPL_H
#define ACTD_STATUS_IMPL_H

#include <pthread.h>

#include "actd/v1/status.pb-c.h"
#include "daemon/recorder.h"
#include "daemon/status.h"

// Room for every cause and every limit of every joint at once: nothing is lost.
#define DROPS_PER_CAMERA 6
#define DROPS_ELSEWHERE  (CHUNK_VERDICTS - 1 + 18)
#define MAX_DROPS        (DROPS_ELSEWHERE + DROPS_PER_CAMERA * POLICY_MAX_CAMERAS)
#define MAX_LIMITED      (ACTD_MAX_JOINTS * (GUARD_LIMITS - 1))
#define MAX_STREAMS      (POLICY_MAX_CAMERAS + 1)
// The longest: a camera's name, " frames refused (", why, ")".
#define DROP_NAME  256
#define LIMIT_NAME (CONFIG_NAME + 16)

// One cause, in the same place each time, whatever its name says of why.
struct status_drop {
    char name[DROP_NAME];
    uint64_t value, said; // since the start, and as of the last line
    bool normal;          // newest wins: nothing to warn of
    Actd__V1__Counter counter;
};

struct status_limited {
    char name[LIMIT_NAME];
    Actd__V1__Counter counter;
};

#define STATUS_EXPLANATION 512

// A histogram of the whole run with its buckets.
struct status_histogram {
    struct hist_detail detail;
    Actd__V1__Histogram message;
    Actd__V1__Bucket bucket[HIST_BUCKETS >> HIST_MERGE_LEAST];
    Actd__V1__Bucket *buckets[HIST_BUCKETS >> HIST_MERGE_LEAST];
};
enum status_whole { // those that go out with their buckets, each once
    WHOLE_LATENESS,
    WHOLE_TICK,
    WHOLE_INFERENCE,
    WHOLE_LATENCY,
    WHOLE_SENSOR_AGE,
    WHOLE_HISTOGRAMS,
};

struct status_record {
    struct recorder_counts counts;
    Actd__V1__RecordStatus message;
    Actd__V1__Counter lost[TAPE_CLASSES + 1], *losts[TAPE_CLASSES + 1];
    int n_lost;
};

struct status {
    pthread_mutex_t mutex; // of everything below but src
    struct status_source src;
    struct loop_report report;
    ns_t last_ns;
    uint64_t last_commands, last_inferences, last_received[MAX_STREAMS];
    double received_hz[MAX_STREAMS]; // over the last second
    double judged_hz[MAX_STREAMS];   // the same, 0 = the stream was not there all of it
    uint64_t lateness_before[HIST_BUCKETS], inference_before[HIST_BUCKETS];
    struct histogram_summary lateness_second, inference_second;
    double achieved_hz, inference_hz;
    struct status_drop drop[MAX_DROPS];
    int n_causes;
    struct status_limited limit[MAX_LIMITED];
    uint64_t limited_total;
    // What the message points to: only counters that are not 0.
    Actd__V1__Counter *drops[MAX_DROPS], *limited[MAX_LIMITED];
    int n_drops, n_limited;
    Actd__V1__Stream stream[MAX_STREAMS], *streams[MAX_STREAMS];
    int n_streams;
    struct blackbox_counts blackbox;
    uint64_t dumps_said, dump_failures_said;
    // Faults that came up at least once, budgets, seams: status_judge.c.
    Actd__V1__Fault fault[LADDER_REASONS], *faults[LADDER_REASONS];
    int n_faults;
    Actd__V1__Budget budget[BOARD_BUDGETS], *budgets[BOARD_BUDGETS];
    Actd__V1__Histogram budget_histogram[BOARD_BUDGETS];
    Actd__V1__Seam seam[ACTD_MAX_JOINTS], *seams[ACTD_MAX_JOINTS];
    uint64_t episodes_said[LADDER_REASONS];
    // As of the newest tick: status_live.c.
    Actd__V1__JointStatus joint[ACTD_MAX_JOINTS], *joints[ACTD_MAX_JOINTS];
    Actd__V1__ChunkStatus chunk;
    Actd__V1__PolicyStatus policy_message;
    struct swap_policy policy;
    char explanation[STATUS_EXPLANATION];
    struct status_record record;
    struct status_histogram whole[WHOLE_HISTOGRAMS];
    uint8_t buffer[STATUS_MOST];
};

// plain. Brings drops and limited up to date with s->report, the board and the threads.
void status_count(struct status *s);
// plain. The same for faults, budgets and seams.
void status_judge(struct status *s);
void status_histogram(Actd__V1__Histogram *m, struct histogram_summary h);
// plain. The same for joints, the chunk, the policy and the explanation, at now.
void status_live(struct status *s, ns_t now);
// plain. The same for the recording.
void status_record(struct status *s);
// plain. The histograms of the whole run; see hist_detail for merge.
void status_whole(struct status *s, int merge);
// plain, with the mutex held. Of what was measured; see status_pack.
size_t status_message(struct status *s, uint8_t *out, size_t size);
// plain. The line of the second, and a warning of what was newly dropped.
void status_say(struct status *s);
// plain. The last lines of a run.
void status_say_summary(const struct status *s);

#endif
