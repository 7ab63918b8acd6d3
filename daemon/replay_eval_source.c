// The log of an evaluation: messages are taken in the order of their times. Times of capture are
// the daemon's own, from its record of every input; a data set's are its stamps.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "actd/v1/joint_command.pb-c.h"
#include "daemon/replay_eval_source.h"

static void advance(struct eval_source *s, struct eval_track *t)
{
    struct mcap_error err;
    int rc = logbook_next(t->cursor, &t->m, &err);
    for (int tries = 0; rc < 0 && tries < 100000; tries++) {
        s->e->damaged++;
        rc = logbook_next(t->cursor, &t->m, &err);
    }
    t->there = rc == 1;
}

// ---- what became of a message ----------------------------------------------------------------

static void take_input(struct eval_source *s, const struct mcap_message *m)
{
    struct tape_input in;
    if (record_input_read(&in, m->data, m->size))
        s->e->damaged++;
    else if (in.kind == TAPE_MESSAGE)
        s->input[s->n_inputs++ % EVAL_INPUTS] = in;
}

// The newest n records: is the one of this message among them?
static const struct tape_input *find_input(const struct eval_source *s, int stream,
                                           ns_t at, uint64_t n)
{
    uint64_t kept = s->n_inputs < EVAL_INPUTS ? s->n_inputs : EVAL_INPUTS;
    for (uint64_t i = 1; i <= kept && i <= n; i++) {
        const struct tape_input *in = &s->input[(s->n_inputs - i) % EVAL_INPUTS];
        if (in->stream == stream && in->at_ns == at)
            return in;
    }
    return NULL;
}

// A log may lie. With times before 2116 nothing that is reckoned from them overflows.
static bool believable(uint64_t wall_ns)
{
    return wall_ns < 1ull << 62;
}

// Capture time of the message of this stream and log time, as a log time. 0: it was not used. Records
// are in the order in which messages were judged, which is not quite that of their times.
static int64_t capture_of(struct eval_source *s, int stream, const struct mcap_message *m)
{
    int64_t base = logbook_base_ns(s->e->book),
            at = (int64_t)(m->log_ns - (uint64_t)base);
    struct eval_track *t = &s->track[TRACK_INPUT];
    if (!s->inputs)
        return (int64_t)(m->publish_ns > 0 && believable(m->publish_ns) ? m->publish_ns
                                                                        : m->log_ns);
    const struct tape_input *in = find_input(s, stream, at, EVAL_INPUTS);
    while (!in && t->there && t->m.log_ns <= m->log_ns + EVAL_DISORDER_NS) {
        take_input(s, &t->m);
        advance(s, t);
        in = find_input(s, stream, at, 1);
    }
    if (!in || in->outcome != TAPE_ACCEPTED)
        return 0;
    uint64_t capture = (uint64_t)in->capture_ns + (uint64_t)base;
    return believable(capture) ? (int64_t)capture : 0;
}

// ---- joints and actions ----------------------------------------------------------------------

static void take_joints(struct eval_source *s, const struct mcap_message *m)
{
    struct joint_sample in = {0};
    int64_t stamp, capture = capture_of(s, 0, m);
    if (capture == 0 ||
        codec_joints(s->joints, m->data, m->size, &in, &stamp) != CODEC_OK)
        return;
    struct eval_sample *out = &s->sample[s->n_samples++ % EVAL_SAMPLES];
    out->capture_ns = capture;
    memcpy(out->pos, in.pos, sizeof out->pos);
}

static int joint_named(const struct config *cfg, const char *name)
{
    for (int i = 0; i < cfg->n_joints; i++)
        if (strcmp(cfg->joint[i].name, name) == 0)
            return i;
    return -1;
}

static bool read_command(const struct eval_source *s, const struct mcap_message *m,
                         struct eval_action *a)
{
    Actd__V1__JointCommand *c = actd__v1__joint_command__unpack(NULL, m->size, m->data);
    if (!c)
        return false;
    int found = 0;
    a->usable = c->mode == ACTD__V1__MODE__MODE_RUNNING;
    for (size_t i = 0; i < c->n_joints; i++) {
        int j = joint_named(&s->e->cfg, c->joints[i]->name);
        if (j < 0)
            continue;
        a->pos[j] = c->joints[i]->position;
        found++;
    }
    actd__v1__joint_command__free_unpacked(c, NULL);
    return found == s->e->cfg.n_joints;
}

static void take_action(struct eval_source *s, const struct mcap_message *m)
{
    struct eval_action a = {.at_ns = (int64_t)m->log_ns, .usable = true};
    struct joint_sample in = {0};
    int64_t stamp;
    bool good;
    if (s->e->dataset) {
        good = codec_joints(s->actions, m->data, m->size, &in, &stamp) == CODEC_OK;
        memcpy(a.pos, in.pos, sizeof a.pos);
    } else {
        good = read_command(s, m, &a);
    }
    s->e->damaged += !good;
    a.usable = a.usable && good; // what lies beside it is not joined over it
    eval_score_action(&s->e->score, &a);
}

// ---- the log ---------------------------------------------------------------------------------

static int open_track(struct eval_source *s, int i, const char *topic)
{
    struct eval_track *t = &s->track[i];
    int rc = logbook_cursor_new(&t->cursor, s->e->book, topic, 0, 0);
    if (rc == 0)
        advance(s, t);
    return rc == -ENOENT ? 0 : rc;
}

static int open_tracks(struct eval_source *s)
{
    char topic[CONFIG_NAME + 16];
    int rc = s->e->dataset ? 0 : open_track(s, TRACK_INPUT, "/input");
    s->inputs = s->track[TRACK_INPUT].there;
    rc = rc ? rc : open_track(s, TRACK_JOINTS, "/joint_states");
    rc = rc ? rc : open_track(s, TRACK_ACTION, s->e->dataset ? "/action" : "/command");
    for (int i = 0; i < 2 * s->e->cfg.n_cameras && rc == 0; i++) {
        snprintf(topic, sizeof topic, "/camera/%s%s", s->e->cfg.camera[i / 2].name,
                 i % 2 ? "/raw" : "");
        rc = open_track(s, TRACK_CAMERAS + i, topic);
    }
    return rc;
}

static int take_frame(struct eval_source *s, int camera, const struct mcap_message *m)
{
    int64_t capture_ns = capture_of(s, camera + 1, m);
    return capture_ns == 0 ? 0 : eval_take_frame(s, camera, capture_ns, m);
}

static int take(struct eval_source *s, int track, const struct mcap_message *m)
{
    if (track == TRACK_INPUT)
        take_input(s, m);
    else if (track == TRACK_JOINTS)
        take_joints(s, m);
    else if (track == TRACK_ACTION)
        take_action(s, m);
    else
        return take_frame(s, (track - TRACK_CAMERAS) / 2, m);
    return 0;
}

static int walk(struct eval_source *s)
{
    int rc = 0;
    while (rc == 0) {
        int best = -1;
        for (int i = 0; i < TRACKS; i++)
            if (s->track[i].there &&
                (best < 0 || s->track[i].m.log_ns < s->track[best].m.log_ns))
                best = i;
        if (best < 0)
            break;
        if (believable(s->track[best].m.log_ns)) {
            rc = eval_observe_due(s, (int64_t)s->track[best].m.log_ns - 1);
            rc = rc ? rc : take(s, best, &s->track[best].m);
        } else {
            s->e->damaged++;
        }
        advance(s, &s->track[best]);
    }
    return rc ? rc : eval_observe_due(s, INT64_MAX);
}

// ---- begin and end ---------------------------------------------------------------------------

static int open_codecs(struct eval_source *s)
{
    const char *joint[ACTD_MAX_JOINTS], *action[ACTD_MAX_JOINTS];
    const struct config *cfg = &s->e->cfg;
    for (int i = 0; i < cfg->n_joints; i++) {
        joint[i] = s->e->dataset ? cfg->joint[i].state : cfg->joint[i].name;
        action[i] = cfg->joint[i].action;
    }
    int rc = codec_new(&s->joints, joint, cfg->n_joints);
    return rc ? rc : codec_new(&s->actions, action, cfg->n_joints);
}

static int begin(struct eval_source *s)
{
    const struct eval *e = s->e;
    const struct binding *b = &e->fitted->binding;
    double rate = e->cfg.camera[b->primary].rate_hz;
    for (int i = 0; i < e->fitted->info->n_cameras; i++)
        rate = fmax(rate, e->cfg.camera[b->camera_of[i]].rate_hz);
    s->wait_ns = e->dataset ? 0 : (int64_t)(0.75e9 / rate);
    s->skew_ns = (int64_t)(e->cfg.inference.max_skew_ms * 1e6);
    s->row = calloc((size_t)e->score.rows * (size_t)b->n, sizeof *s->row);
    int rc = s->row ? open_codecs(s) : -ENOMEM;
    return rc ? rc : open_tracks(s);
}

static void end(struct eval_source *s)
{
    for (int i = 0; i < TRACKS; i++)
        logbook_cursor_free(s->track[i].cursor);
    eval_views_free(s);
    codec_free(s->joints);
    codec_free(s->actions);
    free(s->row);
    free(s);
}

// Nothing was compared: what stood in the way?
static int explain(const struct eval *e, struct config_error *err)
{
    const char *camera = e->cfg.camera[e->fitted->binding.primary].name;
    if (e->frames == 0)
        snprintf(err->text, sizeof err->text,
                 "no frame of the camera '%s' (the anchor) is in the log", camera);
    else if (e->asked == 0)
        snprintf(
            err->text, sizeof err->text,
            "of %llu frames of '%s' none made an observation: %llu without a joint state, "
            "%llu without a frame of another camera near enough (inference.max_skew_ms), "
            "%llu that do not decode",
            (unsigned long long)e->frames, camera, (unsigned long long)e->no_joints,
            (unsigned long long)e->no_frame, (unsigned long long)e->corrupt);
    else if (e->score.actions == 0)
        snprintf(err->text, sizeof err->text,
                 "no action is in the log to compare with (topic %s)",
                 e->dataset ? "/action" : "/command");
    else
        snprintf(
            err->text, sizeof err->text,
            "no action lies at the time of any row: in a recording only commands made "
            "while RUNNING count");
    return -ENODATA;
}

static void measure(struct eval *e)
{
    uint64_t from = UINT64_MAX, to = 0;
    for (int i = 0; i < logbook_files(e->book); i++) {
        struct mcap_reader *m = logbook_reader(e->book, i);
        if (mcap_message_count(m) == 0)
            continue;
        from = mcap_start_ns(m) < from ? mcap_start_ns(m) : from;
        to = mcap_end_ns(m) > to ? mcap_end_ns(m) : to;
    }
    e->start_ns = to >= from ? from : 0;
    e->seconds = to >= from ? (double)(to - from) / 1e9 : 0;
}

int eval_run(struct eval *e, struct config_error *err)
{
    struct eval_source *s = calloc(1, sizeof *s);
    *err->text = '\0';
    if (!s) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return -ENOMEM;
    }
    s->e = e;
    s->err = err;
    measure(e);
    int rc = begin(s);
    rc = rc ? rc : walk(s);
    end(s);
    eval_score_end(&e->score);
    if (rc && !*err->text)
        snprintf(err->text, sizeof err->text, "%.400s: %s", logbook_path(e->book, 0),
                 strerror(-rc));
    return rc || e->score.all.n > 0 ? rc : explain(e, err);
}
