// log_tool_cut: `actd log cut`: a part of a recording that stands for itself. A replay needs more
// than the part: the keyframes to begin with, so it begins with the last pair of them before; the
// pictures and joint states that a chunk may have been made of, which are up to PICTURES_NS older;
// the policies that thought; and what the file says of the run.
#include "daemon/log_tool_impl.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/clock.h"
#include "daemon/keyframe.h"
#include "daemon/mcap_recover_impl.h"
#include "daemon/out_path.h"
#include "daemon/table.h"
#include "foxglove/Log.pb-c.h"

static const char help[] =
    "usage: actd log cut LOG... --from S --to S -o OUT\n"
    "       actd log cut LOG... --around-fault [--before S] [--after S] -o OUT\n"
    "\n"
    "Writes one part of a recording as a whole file. It begins a little before it was asked to: at\n"
    "the last keyframes before, so that `actd replay` can begin there; and it keeps what the\n"
    "recording says of the run and of its policies.\n"
    "\n"
    "      --from S         seconds after the beginning of the recording (0)\n"
    "      --to S           (its end)\n"
    "      --around-fault   around the first event of a fault instead\n"
    "      --before S       so long before it (10)\n"
    "      --after S        and after it (5)\n"
    "  -o, --output OUT     the file to write; replaced only when the new one is good\n"
    "  -h, --help           this text\n"
    "\n"
    "exit status: 0, 1 something was damaged and is missing, 64 usage, 65 no recording, or nothing\n"
    "in that part, 66 not readable, 74 OUT cannot be written, 130 stopped; then OUT is as it was\n";

#define PICTURES_NS \
    (2 * (uint64_t)NS_PER_S) // an observation older than this stops the arm
#define CHUNK ((size_t)1 << 20)

struct cut {
    struct logbook *book;
    double from, to, before, after;
    bool has_to, around_fault;
    const char *output;
    uint64_t from_ns, to_ns; // what was asked for, log times
    uint64_t begin_ns;       // of the keyframes before
    bool keyframes;          // were found
    struct mcap_out out;
    // of the file in hand
    struct mcap_reader *reader;
    enum mcap_compression compression;
    bool damaged;
};

// ---- from where to where -----------------------------------------------------------------------

static int find_fault(struct cut *c, struct mcap_error *err)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    uint64_t at = 0;
    int rc = logbook_cursor_new(&cursor, c->book, "/events", 0, 0), more = 0;

    while (rc == 0 && !at && (more = logbook_next(cursor, &m, err)) != 0) {
        Foxglove__Log *l = more == 1 ? foxglove__log__unpack(NULL, m.size, m.data) : NULL;
        if (l && strcmp(l->name, "fault") == 0)
            at = m.log_ns;
        if (l)
            foxglove__log__free_unpacked(l, NULL);
    }
    logbook_cursor_free(cursor);
    if (rc != 0)
        return rc;
    if (!at) {
        snprintf(err->text, sizeof err->text,
                 "no fault was recorded: name the part with --from and --to");
        return -ENODATA;
    }
    double when = (double)(at - log_book_start_ns(c->book)) / (double)NS_PER_S;
    printf("the fault was at %.3f s\n", when);
    c->from = when - c->before;
    c->to = when + c->after;
    c->has_to = true;
    return 0;
}

// Log time of the last keyframe of that kind up to to_ns, 0 = none. The two kinds come from two
// threads: in the file either may be first.
static int last_keyframe(struct cut *c, enum keyframe_kind kind, uint64_t to_ns,
                         uint64_t *out, struct mcap_error *err)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct keyframe_head h;
    int rc = logbook_cursor_new(&cursor, c->book, "/keyframe", 0, to_ns + 1), more;

    *out = 0;
    while (rc == 0 && (more = logbook_next(cursor, &m, err)) != 0) {
        if (more < 0 || m.size < sizeof h)
            continue;
        memcpy(&h, m.data, sizeof h);
        if (h.magic == KEYFRAME_MAGIC && h.kind == kind && m.log_ns > *out)
            *out = m.log_ns;
    }
    logbook_cursor_free(cursor);
    return rc;
}

// The last keyframe of the loop before from_ns, and the last one of the bus before that.
static int find_keyframes(struct cut *c, struct mcap_error *err)
{
    uint64_t loop, bus = 0;
    int rc = last_keyframe(c, KEYFRAME_LOOP, c->from_ns, &loop, err);

    if (rc == 0 && loop)
        rc = last_keyframe(c, KEYFRAME_BUS, loop, &bus, err);
    c->keyframes = bus > 0;
    if (bus)
        c->begin_ns = bus;
    return rc;
}

static int bounds(struct cut *c, struct mcap_error *err)
{
    int rc = c->around_fault ? find_fault(c, err) : 0;

    if (rc != 0)
        return rc;
    c->from_ns = c->begin_ns = log_at_ns(c->book, c->from);
    c->to_ns = c->has_to ? log_at_ns(c->book, c->to) : log_book_end_ns(c->book) + 1;
    if (c->to_ns <= c->from_ns || c->from_ns > log_book_end_ns(c->book)) {
        snprintf(err->text, sizeof err->text,
                 "nothing lies between %g and %g s: the recording has %.1f s", c->from,
                 c->has_to ? c->to : INFINITY,
                 (double)(log_book_end_ns(c->book) - log_book_start_ns(c->book)) /
                     (double)NS_PER_S);
        return -ENODATA;
    }
    return logbook_ours(c->book) ? find_keyframes(c, err) : 0;
}

// ---- what goes in ------------------------------------------------------------------------------

static bool observation(const char *topic)
{
    return strcmp(topic, "/joint_states") == 0 || strncmp(topic, "/camera/", 8) == 0;
}

static int put(void *arg, const struct mcap_message *m)
{
    struct cut *c = arg;
    const struct mcap_channel *channel = mcap_channel_of(c->reader, m->channel);
    struct mcap_message mine = *m;
    uint64_t begin = c->begin_ns;
    int rc;

    if (!channel) {
        c->damaged = true;
        return 0;
    }
    if (logbook_ours(c->book) && strcmp(channel->topic, "/policy/seat") == 0) {
        if (mine.log_ns <
            begin) // it says itself since when; viewers show no empty minutes
            mine.log_ns = mine.publish_ns = begin;
    } else if (c->keyframes && observation(channel->topic)) {
        begin -= begin > PICTURES_NS ? PICTURES_NS : begin;
    }
    if (mine.log_ns < begin || mine.log_ns >= c->to_ns)
        return 0;
    rc = mcap_out_message(&c->out, c->reader, &mine, c->compression);
    if (rc == 0 && mcap_out_bytes(&c->out, c->compression) > CHUNK)
        rc = mcap_out_flush(&c->out, c->compression);
    return rc;
}

static bool holds_seats(const struct cut *c, const struct mcap_known_chunk *k)
{
    const struct mcap_channel *seat = mcap_channel_named(c->reader, "/policy/seat");

    if (!logbook_ours(c->book) || k->place.start_ns >= c->to_ns)
        return false;
    for (uint32_t i = 0; seat && i < k->n_ids; i++)
        if (c->reader->ids[k->first_id + i] == seat->id)
            return true;
    return false;
}

static int chunks(struct cut *c, struct mcap_error *err)
{
    struct mcap_reader *r = c->reader;
    uint64_t first = c->begin_ns > PICTURES_NS ? c->begin_ns - PICTURES_NS : 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->n_chunks; i++) {
        const struct mcap_chunk_place *p = &r->chunk[i].place;
        if ((p->end_ns < first || p->start_ns >= c->to_ns) &&
            !holds_seats(c, &r->chunk[i]))
            continue;
        c->compression = p->compression;
        rc = mcap_chunk_each(r, p, put, c, err);
        if (rc == -EBADMSG || rc == -EFBIG) {
            fprintf(stderr, "byte %llu: %s: left out\n", (unsigned long long)p->offset,
                    err->text);
            c->damaged = true;
            rc = 0;
        }
        if (rc == 0)
            rc = mcap_out_flush(&c->out, c->compression);
    }
    c->compression = MCAP_ZSTD;
    for (size_t i = 0; rc == 0 && i < r->n_loose; i++) {
        struct mcap_message m;
        rc = mcap_loose_get(r, &r->loose[i], &m, err);
        if (rc == 0)
            rc = put(c, &m);
    }
    return rc;
}

// What the run says of itself, once; other records of the first file too.
static int metadata(struct cut *c, struct mcap_error *err)
{
    struct mcap_reader *r = logbook_reader(c->book, 0);
    int rc = 0;

    for (int i = 0; i < logbook_files(c->book); i++)
        if (mcap_metadata(r) == 0)
            r = logbook_reader(c->book, i);
    for (int i = 0; rc == 0 && i < mcap_metadata(r); i++)
        rc = mcap_copy_metadata(&c->out, r, i, err);
    return rc;
}

static int write_it(struct cut *c, uint64_t *bytes, struct mcap_error *err)
{
    struct mcap_reader *first = logbook_reader(c->book, 0);
    int rc = mcap_out_open(&c->out, c->output, first->file.fd, mcap_profile(first),
                           mcap_library(first), err);

    if (rc != 0) // -ENOENT would be said of the input
        return rc == -ENOMEM ? rc : -EIO;
    rc = metadata(c, err);
    for (int i = 0; rc == 0 && i < logbook_files(c->book); i++) {
        c->reader = logbook_reader(c->book, i);
        rc = chunks(c, err);
    }
    uint64_t messages = c->out.messages;
    if (rc == 0 && messages == 0) {
        rc = -ENODATA;
        snprintf(err->text, sizeof err->text, "no message lies in that part");
    } else if (rc == 0) {
        rc = mcap_out_close(&c->out, NULL, bytes, err);
    } else if (!err->text[0]) {
        snprintf(err->text, sizeof err->text, "%.150s cannot be written: %s", c->output,
                 strerror(-rc));
    }
    mcap_out_drop(&c->out);
    if (rc == 0) {
        char size[24];
        log_size(*bytes, size);
        printf("%s: %llu message%s, %s\n", c->output, (unsigned long long)messages,
               PLURAL(messages), size);
    }
    return rc;
}

// ---- the command ------------------------------------------------------------------------------

static int run(struct cut *c, char **path, int n)
{
    struct mcap_error err = {""};
    uint64_t bytes = 0;
    int rc;

    log_catch_signals();
    rc = logbook_open(&c->book, (const char *const *)path, n, &err);
    if (rc == 0)
        rc = out_path_spares(c->output, c->book, &err);
    if (rc == 0)
        rc = bounds(c, &err);
    if (rc == 0) {
        err.text[0] = 0;
        rc = write_it(c, &bytes, &err);
    }
    if (rc == 0 && logbook_ours(c->book) && !c->keyframes)
        printf("No keyframe lies before: a replay begins at the first one in it.\n");
    if (rc == 0 && logbook_damage(c->book)[0])
        fprintf(stderr, "%s\n", logbook_damage(c->book));
    if (rc == 0)
        rc = c->damaged || logbook_damage(c->book)[0];
    logbook_close(c->book);
    return rc < 0 ? log_status(rc, &err) : rc;
}

int log_cut(int argc, char **argv)
{
    static const struct option longs[] = {
        {"from", 1, NULL, 'f'},         {"to", 1, NULL, 't'},
        {"around-fault", 0, NULL, 'a'}, {"before", 1, NULL, 'b'},
        {"after", 1, NULL, 'e'},        {"output", 1, NULL, 'o'},
        {"help", 0, NULL, 'h'},         {0}};
    struct cut c = {.before = 10, .after = 5};
    bool good = true, part = false;

    for (int o; (o = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (o == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (o == 'o')
            c.output = optarg;
        else if (o == 'a')
            c.around_fault = true;
        else if (o == '?')
            good = false;
        else
            good &= log_seconds(optarg, o == 'f'   ? &c.from
                                        : o == 't' ? &c.to
                                        : o == 'b' ? &c.before
                                                   : &c.after);
        c.has_to |= o == 't';
        part |= o == 'f' || o == 't';
    }
    if (!good || optind == argc || !c.output || part == c.around_fault)
        return log_usage(help);
    return run(&c, argv + optind, argc - optind);
}
