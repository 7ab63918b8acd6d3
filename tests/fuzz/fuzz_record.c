// fuzz_record: what a replay reads of a recording's own messages (record_codec.h): whatever the bytes
// are, they are refused, or what comes out is within bounds and, written and read once more, the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/record_codec.h"
#include "policy/pool.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum kind { TICK, INPUT, CHUNK, SEAT, PART, KINDS };

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_record: %s\n", what);
    abort();
}

static void tick(const unsigned char *data, size_t size)
{
    static struct tick_record r, again;
    unsigned char out[RECORD_TICK_MAX];
    size_t n;

    if (record_tick_read(&r, data, size) != 0)
        return;
    must(r.joints >= 0 && r.joints <= ACTD_MAX_JOINTS, "joints");
    must(r.cameras >= 0 && r.cameras <= POLICY_MAX_CAMERAS, "cameras");
    must((int)r.mode >= 0 && r.mode < LADDER_STATES, "mode");
    must((int)r.reason >= 0 && r.reason < LADDER_REASONS, "reason");
    n = record_tick(&r, out, sizeof out);
    must(n > 0 || size == 0 || r.in.tick == 0, "a tick that can not be written");
    must(record_tick_read(&again, out, n) == 0, "a tick that can not be read again");
    must(memcmp(&r, &again, tick_record_bytes(r.joints)) == 0, "another tick");
}

static void input(const unsigned char *data, size_t size)
{
    struct tape_input in, again;
    unsigned char out[RECORD_INPUT_MAX];
    size_t n;

    if (record_input_read(&in, data, size) != 0)
        return;
    must(in.stream >= 0 && in.stream <= POLICY_MAX_CAMERAS, "stream");
    must(in.verdict >= 0 && in.verdict < CODEC_VERDICTS, "verdict");
    n = record_input(&in, out, sizeof out);
    must(n > 0 && record_input_read(&again, out, n) == 0,
         "an input that can not be read again");
    must(memcmp(&in, &again, sizeof in) == 0, "another input");
}

static void chunk(const unsigned char *data, size_t size)
{
    struct tape_chunk c, d;
    float *row, *again;
    size_t n, floats;
    unsigned char *out;

    if (record_chunk_read(&c, &row, data, size) != 0)
        return;
    must(c.rows >= 1 && c.joints >= 1 && c.joints <= ACTD_MAX_JOINTS, "shape");
    floats = (size_t)c.rows * (size_t)c.joints;
    out = malloc(record_chunk_bytes(c.rows, c.joints));
    must(out != NULL, "no memory");
    n = record_chunk(&c, row, out, record_chunk_bytes(c.rows, c.joints));
    must(n > 0 && record_chunk_read(&d, &again, out, n) == 0,
         "a chunk that can not be read again");
    must(memcmp(&c, &d, sizeof c) == 0 && memcmp(row, again, floats * sizeof *row) == 0,
         "another chunk");
    free(row);
    free(again);
    free(out);
}

static void seat(const unsigned char *data, size_t size)
{
    static struct tape_seat s;
    char *sidecar;

    if (record_seat_read(&s, &sidecar, data, size) != 0)
        return;
    must(strnlen(s.directory, sizeof s.directory) < sizeof s.directory,
         "a name without end");
    must(s.threads >= 0 && s.threads <= POOL_MAX_THREADS, "threads");
    must(strlen(sidecar) <= size, "a sidecar longer than its message");
    free(sidecar);
}

static void part(const unsigned char *data, size_t size)
{
    struct codec_part p = {0};
    unsigned char *out = malloc(size + 1);
    size_t n;

    must(out != NULL, "no memory");
    if (record_part_read(&p, data, size) == 0) {
        n = record_part(&p, out, size + 1);
        must(n == size && memcmp(out, data, size) == 0, "another part");
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static void (*const read[KINDS])(const unsigned char *, size_t) = {tick, input, chunk,
                                                                       seat, part};

    if (size > 0)
        read[data[0] % KINDS](data + 1, size - 1);
    return 0;
}
