#include "tests/replay/replay_check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/record_codec.h"
#include "foxglove/JointStates.pb-c.h"
#include "tests/replay/log_copy.h"

struct check {
    const struct replay_ran *ran;
    struct replay_checked *out;
    struct replay_robot robot;
    struct brain_again *again;
    char again_path[512], flipped_path[512], half_path[512];
};

__attribute__((format(printf, 2, 3))) static bool complain(struct check *c,
                                                           const char *format, ...)
{
    va_list ap;

    if (c->out->problem[0])
        return false;
    va_start(ap, format);
    vsnprintf(c->out->problem, sizeof c->out->problem, format, ap);
    va_end(ap);
    return false;
}

static uint64_t differing(const struct replay_result *r)
{
    return r->differing[0] + r->differing[1] + r->differing[2] + r->differing[3];
}

static bool open_book(struct check *c, struct logbook **book, const char *path)
{
    struct mcap_error e;

    if (logbook_open(book, &path, 1, &e) == 0)
        return true;
    return complain(c, "%s: %s", path, e.text);
}

static bool run(struct check *c, struct logbook *book, const char *output,
                struct replay_result *r)
{
    const struct replay_options opt = {
        .tolerance_rad = -1, .output = output, .quiet = true};
    struct config_error err;

    if (replay_run_robot(book, &c->robot, &opt, r, &err) == 0)
        return true;
    return complain(c, "replay: %s", err.text);
}

// ---- the recording ---------------------------------------------------------------------------

static bool all_of_it(struct check *c, const struct replay_result *r, const char *which)
{
    const struct replay_ran *ran = c->ran;

    if (differing(r) > 0)
        return complain(c, "%s differs: tick %lu, %s: %s", which,
                        (unsigned long)r->first.tick, r->first.stage, r->first.text);
    if (r->unreadable + r->gaps + r->ticks_skipped + r->inputs_skipped +
            r->commands_skipped >
        0)
        return complain(
            c,
            "%s: %lu gaps, %lu ticks, %lu inputs, %lu commands left out, %lu unreadable",
            which, (unsigned long)r->gaps, (unsigned long)r->ticks_skipped,
            (unsigned long)r->inputs_skipped, (unsigned long)r->commands_skipped,
            (unsigned long)r->unreadable);
    if (r->ticks != ran->ticks || r->inputs != ran->inputs ||
        r->commands != ran->commands || r->chunks + r->chunks_taken != ran->chunks)
        return complain(
            c,
            "%s has %lu ticks, %lu inputs, %lu chunks, %lu commands, and the world %lu, "
            "%lu, %lu, %lu",
            which, (unsigned long)r->ticks, (unsigned long)r->inputs,
            (unsigned long)(r->chunks + r->chunks_taken), (unsigned long)r->commands,
            (unsigned long)ran->ticks, (unsigned long)ran->inputs,
            (unsigned long)ran->chunks, (unsigned long)ran->commands);
    if (c->again && r->chunks < ran->chunks)
        return complain(c, "%s: %lu of %lu chunks were not made anew", which,
                        (unsigned long)(ran->chunks - r->chunks),
                        (unsigned long)ran->chunks);
    return true;
}

// The loop's memory was hit: all is the same up to that tick, and not for long from there on.
static bool shows_the_hit(struct check *c, const struct replay_result *r)
{
    if (!r->first.any)
        return complain(c, "the loop's memory was hit, and the replay is the same");
    if (r->first.tick + 1 < c->ran->hit || r->first.tick > c->ran->shown)
        return complain(
            c,
            "memory was hit in tick %lu and detected in tick %lu, and tick %lu "
            "differs first: %s",
            (unsigned long)c->ran->hit - 1, (unsigned long)c->ran->shown,
            (unsigned long)r->first.tick, r->first.text);
    return true;
}

static bool same_logs(struct check *c, struct logbook *a, struct logbook *b)
{
    const char *const topic[] = {"/tick",
                                 "/command",
                                 "/input",
                                 "/policy/chunk",
                                 "/joint_states",
                                 "/undecodable/joint_states",
                                 "/camera/front",
                                 "/camera/front/raw",
                                 "/undecodable/front",
                                 "/camera/wrist",
                                 "/camera/wrist/raw",
                                 "/undecodable/wrist",
                                 "/parts/joint_states",
                                 "/parts/front",
                                 "/parts/wrist"};
    char what[200] = "";

    return log_same(a, b, topic, sizeof topic / sizeof *topic, what) ||
           complain(c, "%s", what);
}

// Its own log says the same, and is replayed as well.
static bool once_more(struct check *c, struct logbook *first)
{
    struct replay_result r;
    struct logbook *book;
    bool good = open_book(c, &book, c->again_path);

    if (!good)
        return false;
    if (c->ran->hit == 0)
        good = same_logs(c, first, book);
    good = good && run(c, book, NULL, &r);
    if (good && c->ran->hit == 0)
        good = all_of_it(c, &r, "the replay's own log");
    else if (good && differing(&r) > 0)
        good = complain(c, "the replay's own log differs: tick %lu, %s: %s",
                        (unsigned long)r.first.tick, r.first.stage, r.first.text);
    logbook_close(book);
    return good;
}

// ---- one byte --------------------------------------------------------------------------------

// The number of a sample that a tick saw, two thirds of the way; 0 = none.
static uint64_t a_sample(struct logbook *book, uint64_t ticks)
{
    static struct tick_record r;
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    uint64_t sample = 0;

    if (logbook_cursor_new(&cursor, book, "/tick", 0, 0) != 0)
        return 0;
    for (uint64_t n = 0; n < ticks * 2 / 3 && logbook_next(cursor, &m, &e) == 1; n++)
        if (record_tick_read(&r, m.data, m.size) == 0 && r.in.joint_sample_new)
            sample = r.in.joint_sample;
    logbook_cursor_free(cursor);
    return sample;
}

// Log time of the message that it came in; 0 = there is none.
static uint64_t time_of(struct logbook *book, uint64_t sample)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    struct tape_input in;
    uint64_t at = 0;

    if (logbook_cursor_new(&cursor, book, "/input", 0, 0) != 0)
        return 0;
    while (at == 0 && logbook_next(cursor, &m, &e) == 1)
        if (record_input_read(&in, m.data, m.size) == 0 && in.joint_sample == sample)
            at = m.log_ns;
    logbook_cursor_free(cursor);
    return at;
}

// Where the last joint's position that is not 0 lies in the message, 0 = nowhere.
static size_t place_of_position(const struct mcap_message *m)
{
    Foxglove__JointStates *s = foxglove__joint_states__unpack(NULL, m->size, m->data);
    unsigned char pattern[9] = {0x11}; // field 2 of JointState, a double
    const char *at = NULL;

    for (size_t i = s ? s->n_joints : 0; i-- > 0 && !at;) {
        memcpy(pattern + 1, &s->joints[i]->position, 8);
        at = memmem(m->data, m->size, pattern, sizeof pattern);
    }
    if (s)
        foxglove__joint_states__free_unpacked(s, NULL);
    return at ? (size_t)(at - (const char *)m->data) + 1 : 0;
}

// The lowest bit of a joint's position.
static bool a_position(struct logbook *book, uint64_t ticks, struct log_flip *f)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;

    *f = (struct log_flip){.topic = "/joint_states",
                           .log_ns = time_of(book, a_sample(book, ticks)),
                           .with = 1};
    if (logbook_cursor_new(&cursor, book, f->topic, f->log_ns, f->log_ns + 1) != 0)
        return false;
    if (logbook_next(cursor, &m, &e) == 1)
        f->offset = place_of_position(&m);
    logbook_cursor_free(cursor);
    return f->offset > 0;
}

// A pixel in the middle of the frame that a chunk in the middle of the run was made of.
static bool a_pixel(struct logbook *book, uint64_t chunks, struct log_flip *f)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    struct tape_chunk c = {0};
    struct codec_frame frame;
    float *row;
    bool found = false;

    if (logbook_cursor_new(&cursor, book, "/policy/chunk", 0, 0) != 0)
        return false;
    while (c.number < chunks / 2 && logbook_next(cursor, &m, &e) == 1 &&
           record_chunk_read(&c, &row, m.data, m.size) == 0)
        free(row);
    logbook_cursor_free(cursor);
    f->topic = "/camera/front/raw";
    f->log_ns = (uint64_t)(c.frame_ns[0] + logbook_base_ns(book));
    f->with = 0xff;
    if (logbook_cursor_new(&cursor, book, f->topic, f->log_ns, f->log_ns + 1) != 0)
        return false;
    if (logbook_next(cursor, &m, &e) == 1 &&
        codec_frame(NULL, m.data, m.size, &frame) == CODEC_OK) {
        f->offset = (size_t)(frame.data - (const uint8_t *)m.data) + frame.size / 2;
        found = true;
    }
    logbook_cursor_free(cursor);
    return found;
}

// A frame of the front camera that no chunk of the second half was made of.
static bool unused(struct logbook *book, uint64_t log_ns)
{
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    struct tape_chunk c;
    float *row;
    bool used = false;

    if (logbook_cursor_new(&cursor, book, "/policy/chunk", 0, 0) != 0)
        return true;
    while (!used && logbook_next(cursor, &m, &e) == 1 &&
           record_chunk_read(&c, &row, m.data, m.size) == 0) {
        used = (uint64_t)(c.frame_ns[0] + logbook_base_ns(book)) == log_ns;
        free(row);
    }
    logbook_cursor_free(cursor);
    return !used;
}

// The last byte of such a frame; false where there is none.
static bool a_byte_unused(struct logbook *book, struct log_flip *f)
{
    struct mcap_reader *reader = logbook_reader(book, 0);
    uint64_t from = mcap_start_ns(reader) / 2 + mcap_end_ns(reader) / 2;
    struct logbook_cursor *cursor;
    struct mcap_message m;
    struct mcap_error e;
    bool found = false;

    *f = (struct log_flip){.topic = "/camera/front/raw", .with = 0x40};
    if (logbook_cursor_new(&cursor, book, f->topic, from, 0) != 0)
        return false;
    while (!found && logbook_next(cursor, &m, &e) == 1) {
        found = m.size > 0 && unused(book, m.log_ns);
        f->log_ns = m.log_ns;
        f->offset = m.size - 1;
    }
    logbook_cursor_free(cursor);
    return found;
}

// Another byte in the input must be another run: in what it shows in, too.
enum shows_in { IN_INPUTS, IN_CHUNKS, IN_TICKS };

static bool must_differ(struct check *c, struct logbook *first, const struct log_flip *f,
                        enum shows_in where)
{
    struct replay_result r;
    struct logbook *book;
    static const char *const name[] = {"inputs", "chunks", "ticks"};
    int rc = log_copy(logbook_path(first, 0), c->flipped_path, f, 0);
    bool good;

    if (rc != 0)
        return complain(c, "no copy with another byte: %s", strerror(-rc));
    if (!open_book(c, &book, c->flipped_path))
        return false;
    good = run(c, book, NULL, &r);
    logbook_close(book);
    c->out->flips++;
    return good && ((r.differing[IN_INPUTS] > 0 && r.differing[where] > 0) ||
                    complain(c, "another byte in %s, and the replay's %s are the same",
                             f->topic, name[where]));
}

// The second half by itself: nothing differs, and of its ticks only those are left out that come
// before the first keyframe: before the second one where the cut has separated the loop's state from
// that of the bus.
static bool from_the_middle(struct check *c, struct logbook *first)
{
    struct mcap_reader *reader = logbook_reader(first, 0);
    uint64_t from = mcap_start_ns(reader) / 2 + mcap_end_ns(reader) / 2;
    int rc = log_copy(logbook_path(first, 0), c->half_path, NULL, from);
    struct replay_result r;
    struct logbook *book;
    bool good;

    if (rc != 0)
        return complain(c, "no copy of the second half: %s", strerror(-rc));
    if (!open_book(c, &book, c->half_path))
        return false;
    good = run(c, book, NULL, &r);
    logbook_close(book);
    if (!good)
        return false;
    if (differing(&r) > 0)
        return complain(c, "the second half differs: tick %lu, %s: %s",
                        (unsigned long)r.first.tick, r.first.stage, r.first.text);
    if (r.keyframes < 1 || r.gaps > 1 || r.ticks < 50)
        return complain(c, "the second half has %lu keyframes, %lu gaps, and %lu ticks",
                        (unsigned long)r.keyframes, (unsigned long)r.gaps,
                        (unsigned long)r.ticks);
    return true;
}

static bool flips(struct check *c, struct logbook *book)
{
    struct log_flip f = {0};

    if (c->ran->hit > 0)
        return true; // it differs already
    if (!a_position(book, c->ran->ticks, &f))
        return complain(c, "no joint state was acted on");
    if (!must_differ(c, book, &f, IN_TICKS))
        return false;
    if (a_byte_unused(book, &f) && !must_differ(c, book, &f, IN_INPUTS))
        return false;
    if (!c->again)
        return true;
    if (!a_pixel(book, c->ran->chunks, &f))
        return complain(c, "no frame of a chunk is there");
    return must_differ(c, book, &f, IN_CHUNKS);
}

// ----------------------------------------------------------------------------------------------

static bool all(struct check *c, struct logbook *book)
{
    struct replay_result *r = &c->out->result;

    if (logbook_files(book) != 1)
        return complain(c, "%d files", logbook_files(book));
    if (!run(c, book, c->again_path, r))
        return false;
    if (c->ran->hit > 0 ? !shows_the_hit(c, r) : !all_of_it(c, r, "the replay"))
        return false;
    return once_more(c, book) && (c->ran->hit > 0 || from_the_middle(c, book)) &&
           flips(c, book);
}

void replay_check(const char *dir, const struct replay_ran *ran,
                  struct replay_checked *out)
{
    struct check c = {.ran = ran, .out = out};
    struct logbook *book;

    memset(out, 0, sizeof *out);
    // Beside the directory: what is in it is one recording.
    snprintf(c.again_path, sizeof c.again_path, "%.480s.again.mcap", dir);
    snprintf(c.flipped_path, sizeof c.flipped_path, "%.480s.flipped.mcap", dir);
    snprintf(c.half_path, sizeof c.half_path, "%.480s.half.mcap", dir);
    world_robot(&ran->cfg, &c.robot);
    if (ran->cfg.brain == BRAIN_ACT) {
        c.again = brain_again_new(&ran->cfg);
        c.robot.arg = c.again;
        c.robot.think = c.again ? brain_again_think : NULL;
        if (!c.again)
            (void)complain(&c, "the policy can not be made anew");
    }
    if (open_book(&c, &book, dir)) {
        (void)all(&c, book);
        logbook_close(book);
    }
    brain_again_free(c.again);
}
