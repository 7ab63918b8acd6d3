// The way back, from a file that anybody may have written. protobuf-c gets its memory from an
// arena of a size that follows from the message's: a few bytes of unknown fields would make it ask
// malloc for fifty times as many. Then every number is looked at that somebody counts, indexes or
// adds with: a recording that says there are a million joints is no recording.
#include "daemon/record_codec_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "actd/v1/record.pb-c.h"
#include "daemon/codec.h"
#include "policy/pool.h"

#define ALIGN 16
// A tick of 32 joints and 16 cameras needs 12 KiB, an input less than one.
#define SMALL_ARENA (48 * 1024)
#define SEAT_MAX    (1024 * 1024) // bytes of the message; policy.yaml is 64 KiB at most
#define ROWS_MAX    4096          // chunk_size of a checkpoint, at most
#define TAKEN_MAX   4096          // chunks by one tick; the loop's ring has room for 8
#define REQUESTS    63u           // all bits of enum board_request

struct arena {
    unsigned char *data;
    size_t used, capacity;
};

// Zeroed, since protobuf-c 1.4.1 looks at pointers it never set when it cleans up after an error.
static void *arena_alloc(void *arg, size_t size)
{
    struct arena *a = arg;
    unsigned char *p = a->data + a->used;

    if (size > a->capacity - a->used)
        return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    a->used = size > a->capacity - a->used ? a->capacity : a->used + size;
    memset(p, 0, (size_t)(a->data + a->used - p));
    return p;
}

static void arena_free(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

static bool within(int64_t x, int64_t low, int64_t high)
{
    return x >= low && x <= high;
}

// Two such times may be added and subtracted: 2^62 ns are 146 years.
static bool time_good(int64_t ns)
{
    return within(ns, -(INT64_C(1) << 62) + 1, (INT64_C(1) << 62) - 1);
}

// ---- ticks -----------------------------------------------------------------------------------

static bool inputs_good(const Actd__V1__Tick *m)
{
    return time_good(m->now_ns) && time_good(m->lateness_ns) &&
           time_good(m->last_work_ns) && time_good(m->made_ns) &&
           time_good(m->reported_ns) &&
           within(m->joints_refused_for, 0, LADDER_REASONS - 1) &&
           within(m->joints_refused_joint, -1, ACTD_MAX_JOINTS - 1) &&
           m->n_cameras <= POLICY_MAX_CAMERAS && m->chunks_taken <= TAKEN_MAX &&
           (m->requests & ~REQUESTS) == 0 &&
           within(m->starved, BOARD_FED, BOARD_NO_JOINTS);
}

static bool outcome_good(const Actd__V1__Tick *m)
{
    return within(m->mode, 0, LADDER_STATES - 1) &&
           within(m->reason, 0, LADDER_REASONS - 1) &&
           within(m->culprit, -1, ACTD_MAX_JOINTS - 1) && time_good(m->margin_ns) &&
           m->chunks_blended <= INT32_MAX;
}

// As many of each as there are joints; of a target also none.
static bool columns_good(const Actd__V1__Tick *m)
{
    size_t n = m->n_measured;
    bool good = n <= ACTD_MAX_JOINTS && m->n_limit == n;

#define CHECK(field, of) good = good && m->n_##field == n;
    RECORD_TICK_COLUMNS(CHECK)
#undef CHECK
#define CHECK(field, of) good = good && (m->n_##field == n || m->n_##field == 0);
    RECORD_TICK_TARGETS(CHECK)
#undef CHECK
    for (size_t i = 0; good && i < n; i++)
        good = within(m->limit[i], 0, GUARD_LIMITS - 1);
    return good;
}

static int cameras_in(struct tick_inputs *in, const Actd__V1__Tick *m)
{
    for (size_t i = 0; i < m->n_cameras; i++) {
        const Actd__V1__CameraMark *mark = m->cameras[i];

        if (!time_good(mark->received_ns) || !time_good(mark->changed_ns))
            return -EINVAL;
#define COPY(field) in->camera[i].field = mark->field;
        RECORD_TICK_CAMERA(COPY)
#undef COPY
    }
    return 0;
}

static void joints_in(struct tick_record *r, const Actd__V1__Tick *m)
{
    r->joints = (int)m->n_measured;
    for (size_t i = 0; i < m->n_measured; i++) {
        struct tick_joint *j = &r->joint[i];

#define COPY(field, of) j->of = m->field[i];
        RECORD_TICK_COLUMNS(COPY)
#undef COPY
#define COPY(field, of) j->of = m->n_##field > 0 ? m->field[i] : (double)NAN;
        RECORD_TICK_TARGETS(COPY)
#undef COPY
        j->limit = (enum guard_limit)m->limit[i];
    }
}

static int tick_in(struct tick_record *r, const Actd__V1__Tick *m)
{
    if (!inputs_good(m) || !outcome_good(m) || !columns_good(m))
        return -EINVAL;
#define COPY(field) r->in.field = m->field;
    RECORD_TICK_INPUTS(COPY)
#undef COPY
    r->mode = (enum ladder_state)m->mode;
    r->reason = (enum ladder_reason)m->reason;
#define COPY(field) r->field = m->field;
    RECORD_TICK_OUTCOME(COPY)
#undef COPY
    r->chunks_blended = (int)m->chunks_blended;
    r->cameras = (int)m->n_cameras;
    joints_in(r, m);
    return cameras_in(&r->in, m);
}

int record_tick_read(struct tick_record *out, const void *data, size_t size)
{
    _Alignas(ALIGN) unsigned char memory[SMALL_ARENA];
    struct arena a = {memory, 0, sizeof memory};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &a};
    const Actd__V1__Tick *m = NULL;

    memset(out, 0, sizeof *out);
    if (size <= RECORD_TICK_MAX)
        m = actd__v1__tick__unpack(&allocator, size, data);
    return m ? tick_in(out, m) : -EINVAL;
}

// ---- inputs ----------------------------------------------------------------------------------

static bool input_good(const Actd__V1__Input *m)
{
    return m->number > 0 && time_good(m->at_ns) && time_good(m->capture_ns) &&
           within(m->kind, TAPE_MESSAGE, TAPE_PART) && m->stream <= POLICY_MAX_CAMERAS &&
           m->verdict < CODEC_VERDICTS && within(m->outcome, TAPE_ACCEPTED, TAPE_NONE) &&
           within(m->form, TAPE_UNDECODABLE, TAPE_PARTS);
}

int record_input_read(struct tape_input *out, const void *data, size_t size)
{
    _Alignas(ALIGN) unsigned char memory[SMALL_ARENA];
    struct arena a = {memory, 0, sizeof memory};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &a};
    const Actd__V1__Input *m = NULL;

    memset(out, 0, sizeof *out);
    if (size <= RECORD_INPUT_MAX)
        m = actd__v1__input__unpack(&allocator, size, data);
    if (!m || !input_good(m))
        return -EINVAL;
#define COPY(field) out->field = m->field;
    RECORD_INPUT(COPY)
#undef COPY
    out->kind = (enum tape_input_kind)m->kind;
    out->stream = (int)m->stream;
    out->outcome = (enum tape_outcome)m->outcome;
    out->verdict = (int)m->verdict;
    out->form = (enum tape_form)m->form;
    return 0;
}

int record_part_read(struct codec_part *part, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    if (size == 0 || bytes[0] > (RECORD_PART_MORE | RECORD_PART_FIRST))
        return -EINVAL;
    part->more = bytes[0] & RECORD_PART_MORE;
    part->first = bytes[0] & RECORD_PART_FIRST;
    part->data = bytes + 1;
    part->size = size - 1;
    return 0;
}

// ---- chunks ----------------------------------------------------------------------------------

static bool chunk_good(const Actd__V1__Chunk *m)
{
    bool good = m->number > 0 && m->rows >= 1 && m->rows <= ROWS_MAX && m->joints >= 1 &&
                m->joints <= ACTD_MAX_JOINTS && m->n_row == (size_t)m->rows * m->joints &&
                m->n_frame_ns <= POLICY_MAX_CAMERAS && m->n_capture_ns == m->n_frame_ns &&
                time_good(m->anchor_ns) && time_good(m->oldest_ns) &&
                time_good(m->ready_ns) && time_good(m->began_ns) &&
                time_good(m->step_ns) && m->step_ns > 0;

    for (size_t i = 0; good && i < m->n_frame_ns; i++)
        good = time_good(m->frame_ns[i]) && time_good(m->capture_ns[i]);
    return good;
}

static int chunk_in(struct tape_chunk *out, float **row, const Actd__V1__Chunk *m)
{
    if (!chunk_good(m))
        return -EINVAL;
    *row = malloc(m->n_row * sizeof **row);
    if (!*row)
        return -ENOMEM;
    memcpy(*row, m->row, m->n_row * sizeof **row);
#define COPY(field) out->field = m->field;
    RECORD_CHUNK(COPY)
#undef COPY
    out->rows = (int32_t)m->rows;
    out->joints = (int32_t)m->joints;
    for (size_t i = 0; i < m->n_frame_ns; i++) {
        out->frame_ns[i] = m->frame_ns[i];
        out->capture_ns[i] = m->capture_ns[i];
    }
    return 0;
}

int record_chunk_read(struct tape_chunk *out, float **row, const void *data, size_t size)
{
    struct arena a = {NULL, 0, SMALL_ARENA + 2 * size};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &a};
    const Actd__V1__Chunk *m;
    int rc;

    memset(out, 0, sizeof *out);
    *row = NULL;
    if (size > record_chunk_bytes(ROWS_MAX, ACTD_MAX_JOINTS))
        return -EINVAL;
    a.data = malloc(a.capacity);
    if (!a.data)
        return -ENOMEM;
    m = actd__v1__chunk__unpack(&allocator, size, data);
    rc = m ? chunk_in(out, row, m) : -EINVAL;
    free(a.data);
    return rc;
}

// ---- seats -----------------------------------------------------------------------------------

static bool copy_text(char *out, size_t capacity, const char *text)
{
    size_t n = strlen(text);

    if (n >= capacity)
        return false;
    memcpy(out, text, n + 1);
    return true;
}

static int seat_in(struct tape_seat *out, char **sidecar, const Actd__V1__Seat *m)
{
    bool good = time_good(m->since_ns) && m->threads <= POOL_MAX_THREADS;

#define COPY(field) good = good && copy_text(out->field, sizeof out->field, m->field);
    RECORD_SEAT_TEXTS(COPY)
#undef COPY
    if (!good)
        return -EINVAL;
    out->generation = m->generation;
    out->since_ns = m->since_ns;
    out->threads = (int)m->threads;
    *sidecar = strdup(m->sidecar);
    return *sidecar ? 0 : -ENOMEM;
}

int record_seat_read(struct tape_seat *out, char **sidecar, const void *data, size_t size)
{
    struct arena a = {NULL, 0, SMALL_ARENA + 2 * size};
    ProtobufCAllocator allocator = {arena_alloc, arena_free, &a};
    const Actd__V1__Seat *m;
    int rc;

    memset(out, 0, sizeof *out);
    *sidecar = NULL;
    if (size > SEAT_MAX)
        return -EINVAL;
    a.data = malloc(a.capacity);
    if (!a.data)
        return -ENOMEM;
    m = actd__v1__seat__unpack(&allocator, size, data);
    rc = m ? seat_in(out, sidecar, m) : -EINVAL;
    free(a.data);
    return rc;
}
