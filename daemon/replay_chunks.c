// Chunks: the observation of each request through the policy once more, and the rows held against
// the recorded ones. What goes on to the loop is what came out; where only a tolerance is asked
// for, what was recorded, so that one stage's last bits are not the next one's.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_impl.h"

// ---- the observation -------------------------------------------------------------------------

struct pictures { // by config camera
    struct policy_image image[POLICY_MAX_CAMERAS];
    uint8_t *rgb[POLICY_MAX_CAMERAS];
};

static void free_pictures(struct pictures *p)
{
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free(p->rgb[i]);
}

static int decode(const void *data, size_t size, uint8_t **rgb,
                  struct policy_image *image)
{
    struct codec_frame f;
    int width = 0, height = 0;
    size_t n;

    if (codec_frame(NULL, data, size, &f) != CODEC_OK)
        return -EINVAL;
    n = (size_t)f.width * (size_t)f.height * 3;
    *rgb = malloc(n + 1);
    if (!*rgb)
        return -ENOMEM;
    if (camera_decode(&f, *rgb, n, &width, &height) != CODEC_OK)
        return -EINVAL;
    *image = (struct policy_image){
        .rgb = *rgb, .width = width, .height = height, .stride = 3 * width};
    return 0;
}

static int look(struct replay *r, const struct tape_chunk *c, struct pictures *p)
{
    int rc = 0;

    memset(p, 0, sizeof *p);
    for (int i = 0; i < r->robot->cameras && rc == 0; i++) {
        void *own = NULL;
        size_t size = 0;

        if (c->frame_ns[i] == 0)
            continue;
        rc = replay_frame(r, i, c->frame_ns[i], &own, &size);
        if (rc == 0)
            rc = decode(own, size, &p->rgb[i], &p->image[i]);
        free(own);
    }
    return rc;
}

// Rows anew: how many, -ENOENT: take them as recorded, or -errno.
static int think(struct replay *r, const struct tape_chunk *c, float *row)
{
    const struct joint_sample *joints;
    struct pictures p;
    int rc;

    if (!r->robot->think || r->opt->no_policy)
        return -ENOENT;
    if (!replay_inputs_to(r, c->joint_sample, c->ready_ns))
        return -ENOENT;
    joints = replay_sample(r, c->joint_sample);
    rc = look(r, c, &p);
    // A frame that is not there, or does not decode any more, is no reason to stop.
    if (rc == 0)
        rc = r->robot->think(r->robot->arg, c, p.image, joints, row, r->err);
    else if (rc != -ENOMEM)
        rc = -ENOENT;
    free_pictures(&p);
    return rc;
}

// ---- one chunk -------------------------------------------------------------------------------

static size_t row_bytes(const struct tape_chunk *c)
{
    return (size_t)c->rows * (size_t)c->joints * sizeof(float);
}

static void judge(struct replay *r, const struct tape_chunk *c, const float *then,
                  const float *now)
{
    char text[400];

    r->out->chunks++;
    if (r->opt->chunk)
        r->opt->chunk(r->opt->arg, c, then, now);
    if (!r->judging || memcmp(then, now, row_bytes(c)) == 0)
        return;
    if (replay_compare_rows(r->robot, c, then, now, r->tolerance_rad, text))
        replay_differs(r, REPLAY_CHUNK, r->tick, text);
}

static void write_out(struct replay *r, const struct mcap_message *m,
                      const struct tape_chunk *c, const float *row)
{
    size_t capacity = record_chunk_bytes(c->rows, c->joints);
    unsigned char *bytes = r->output ? malloc(capacity) : NULL;

    if (!bytes)
        return;
    replay_output_put(r->output, "/policy/chunk", m->log_ns, m->publish_ns, bytes,
                      record_chunk(c, row, bytes, capacity));
    free(bytes);
}

// A policy in place of the recorded one has its own rows and rate, a longer horizon more rows.
static void take_over(struct replay *r, int made, float **row, float **anew)
{
    struct replay_rows *rows = &r->rows;
    float *before = *row;

    r->out->chunks++;
    rows->c.rows = made;
    if (r->robot->think_step_ns > 0)
        rows->c.step_ns = r->robot->think_step_ns;
    *row = *anew;
    *anew = before;
}

static bool use(struct replay *r, const struct tape_chunk *c, float **row, float **anew)
{
    int rc = think(r, c, *anew);

    if (rc > 0 && r->robot->think_rows > 0) {
        take_over(r, rc, row, anew);
        return true;
    }
    if (rc > 0) {
        judge(r, c, *row, *anew);
        if (r->tolerance_rad <= 0 || !r->judging)
            memcpy(*row, *anew, row_bytes(c));
        return true;
    }
    r->out->chunks_taken++;
    if (rc != -ENOENT) { // said once, in words that the policy found
        char text[400];

        snprintf(text, sizeof text, "chunk %llu: %.300s", (unsigned long long)c->number,
                 r->err->text);
        replay_differs(r, REPLAY_CHUNK, r->tick, text);
    }
    return false;
}

static size_t room(const struct replay *r, const struct tape_chunk *c)
{
    int rows = c->rows > r->robot->think_rows ? c->rows : r->robot->think_rows;

    return (size_t)rows * (size_t)c->joints + 1;
}

static void one(struct replay *r, const struct mcap_message *m)
{
    struct replay_rows *rows = &r->rows;
    float *row = NULL, *anew;

    rows->there = false;
    if (record_chunk_read(&rows->c, &row, m->data, m->size) != 0) {
        r->out->unreadable++;
        return;
    }
    anew = calloc(room(r, &rows->c), sizeof *anew);
    if (anew && rows->c.joints == r->robot->loop.joints)
        (void)use(r, &rows->c, &row, &anew);
    else
        r->out->chunks_taken++;
    free(anew);
    free(rows->row);
    rows->row = row;
    rows->there = true;
    r->chunk = rows->c.number;
    write_out(r, m, &rows->c, row);
}

bool replay_chunk(struct replay *r, uint64_t number)
{
    while (r->chunk < number && replay_peek(r, &r->chunks)) {
        one(r, &r->chunks.m);
        replay_drop(&r->chunks);
    }
    return r->rows.there && r->chunk == number;
}

void replay_chunks_all(struct replay *r)
{
    (void)replay_chunk(r, UINT64_MAX);
}

void replay_chunks_close(struct replay *r)
{
    free(r->rows.row);
}
