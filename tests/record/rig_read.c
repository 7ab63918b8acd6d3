// What the daemon left, read back by our own reader.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/mcap_read.h"
#include "daemon/record_codec.h"
#include "foxglove/Log.pb-c.h"
#include "tests/record/rig.h"

void rig_add(struct rig_samples *s, ns_t v)
{
    if (s->n == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 65536;
        ns_t *grown = realloc(s->v, room * sizeof *grown);

        if (grown == NULL)
            return;
        s->v = grown;
        s->room = room;
    }
    s->v[s->n++] = v;
}

static int by_size(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return (x > y) - (x < y);
}

ns_t rig_at(struct rig_samples *s, double part)
{
    size_t i = (size_t)(part * (double)s->n);

    if (s->n == 0)
        return 0;
    qsort(s->v, s->n, sizeof *s->v, by_size);
    return s->v[i < s->n ? i : s->n - 1];
}

// ---- one message ---------------------------------------------------------------------------------

static int tick(struct rig_log *l, const struct mcap_message *m, uint64_t *number)
{
    struct tick_record t;

    if (record_tick_read(&t, m->data, m->size) != 0)
        return -EPROTO;
    if (*number != 0 && t.in.tick != *number + 1) {
        l->skipped += t.in.tick - *number - 1;
        l->gaps++;
    }
    *number = t.in.tick;
    if (t.in.now_ns > l->last_tick_ns)
        l->last_tick_ns = t.in.now_ns;
    if (l->ticks++ == 0 || t.in.now_ns < l->first_tick_ns)
        l->first_tick_ns = t.in.now_ns;
    return 0;
}

static int input(struct rig_log *l, const struct mcap_message *m)
{
    struct tape_input in;

    if (record_input_read(&in, m->data, m->size) != 0)
        return -EPROTO;
    l->inputs++;
    l->lost_frames += in.kind == TAPE_MESSAGE && in.stream > 0 && !in.kept;
    return 0;
}

static int event(struct rig_log *l, const struct mcap_message *m)
{
    Foxglove__Log *e = foxglove__log__unpack(NULL, m->size, m->data);
    size_t n = strlen(l->events);

    if (e == NULL)
        return -EPROTO;
    if (strcmp(e->name, "record") == 0)
        snprintf(l->events + n, sizeof l->events - n, "    in the recording: %s\n",
                 e->message);
    foxglove__log__free_unpacked(e, NULL);
    return 0;
}

static int count(struct rig_log *l, const char *topic, const struct mcap_message *m,
                 uint64_t *number)
{
    l->messages++;
    if (strcmp(topic, "/tick") == 0)
        return tick(l, m, number);
    if (strcmp(topic, "/input") == 0)
        return input(l, m);
    if (strcmp(topic, "/events") == 0)
        return event(l, m);
    l->frames += strncmp(topic, "/camera/", 8) == 0;
    l->joints += strcmp(topic, "/joint_states") == 0;
    return 0;
}

// ---- files ---------------------------------------------------------------------------------------

int rig_read_file(struct rig_log *out, const char *path)
{
    struct mcap_reader *r = NULL;
    struct mcap_cursor *c = NULL;
    struct mcap_error err = {""};
    struct mcap_message m;
    uint64_t number = 0;
    int rc = mcap_open(&r, path, NULL, &err);

    if (rc == 0)
        rc = mcap_cursor_new(&c, r, NULL, 0, MCAP_FILE_ORDER, 0, 0);
    while (rc == 0 && (rc = mcap_next(c, &m, &err)) == 1)
        rc = count(out, mcap_channel_of(r, m.channel)->topic, &m, &number);
    if (rc != 0)
        fprintf(stderr, "rig: %s: %s\n", path, err.text[0] ? err.text : strerror(-rc));
    out->files++;
    if (r != NULL)
        out->bytes += mcap_file_bytes(r);
    mcap_cursor_free(c);
    mcap_close(r);
    return rc;
}

static bool ends(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

int rig_read(struct rig_log *out, const char *directory, const char *end)
{
    DIR *d = opendir(directory);
    struct dirent *e;
    int rc = 0;

    memset(out, 0, sizeof *out);
    while (d != NULL && rc == 0 && (e = readdir(d)) != NULL) {
        char path[PATH_MAX];

        if (!ends(e->d_name, end))
            continue;
        snprintf(path, sizeof path, "%.3000s/%s", directory, e->d_name);
        rc = rig_read_file(out, path);
    }
    if (d != NULL)
        closedir(d);
    return rc;
}
