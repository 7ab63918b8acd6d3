// logbook_cursor: one topic over all files.
#include "daemon/logbook_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct logbook_cursor {
    struct logbook *b;
    char *topic;
    uint64_t from, to;
    int file;                // the next one
    struct mcap_cursor *now; // in the one before it
};

int logbook_cursor_new(struct logbook_cursor **out, struct logbook *b, const char *topic,
                       uint64_t from_log_ns, uint64_t to_log_ns)
{
    struct logbook_cursor *c = calloc(1, sizeof *c);

    *out = NULL;
    if (!c || !(c->topic = strdup(topic))) {
        free(c);
        return -ENOMEM;
    }
    c->b = b;
    c->from = from_log_ns;
    c->to = to_log_ns;
    *out = c;
    return 0;
}

void logbook_cursor_free(struct logbook_cursor *c)
{
    if (!c)
        return;
    mcap_cursor_free(c->now);
    free(c->topic);
    free(c);
}

// All channels of that topic: a file may have several.
static int ids(const struct mcap_reader *r, const char *topic, uint16_t **out)
{
    int n = 0;

    *out = malloc((size_t)mcap_channels(r) * sizeof **out + 1);
    for (int i = 0; *out && i < mcap_channels(r); i++)
        if (strcmp(mcap_channel_at(r, i)->topic, topic) == 0)
            (*out)[n++] = mcap_channel_at(r, i)->id;
    return *out ? n : -ENOMEM;
}

// *out NULL: the file has no such topic.
static int cursor_in(struct mcap_cursor **out, struct mcap_reader *r, const char *topic,
                     uint64_t from, uint64_t to)
{
    uint16_t *id;
    int n = ids(r, topic, &id), rc = n < 0 ? n : 0;

    *out = NULL;
    if (n > 0)
        rc = mcap_cursor_new(out, r, id, n, MCAP_FILE_ORDER, from, to);
    free(id);
    return rc;
}

int logbook_next(struct logbook_cursor *c, struct mcap_message *m, struct mcap_error *err)
{
    struct mcap_error why = {""};
    int rc;

    for (;;) {
        if (c->now && (rc = mcap_next(c->now, m, &why)) != 0)
            break;
        mcap_cursor_free(c->now);
        c->now = NULL;
        if (c->file >= c->b->n)
            return 0;
        rc = cursor_in(&c->now, c->b->file[c->file++].reader, c->topic, c->from, c->to);
        if (rc != 0)
            break;
    }
    if (rc < 0) {
        const char *path = c->b->file[c->file - 1].path;
        logbook_note(c->b, path, why.text[0] ? why.text : strerror(-rc));
        if (err)
            snprintf(err->text, sizeof err->text, "%.100s: %.150s", path,
                     why.text[0] ? why.text : strerror(-rc));
    }
    return rc;
}

int logbook_find(struct logbook *b, const char *topic, uint64_t log_ns, void **own,
                 size_t *size, struct mcap_error *err)
{
    struct logbook_cursor *c;
    struct mcap_message m = {0};
    int rc = logbook_cursor_new(&c, b, topic, log_ns, log_ns + 1), found;

    *own = NULL;
    *size = 0;
    if (rc != 0)
        return rc;
    while ((found = logbook_next(c, &m, err)) < 0)
        rc = found;
    if (found == 1) {
        *own = malloc(m.size + 1); // an empty one, too, is something
        if (*own && m.size)
            memcpy(*own, m.data, m.size);
        *size = m.size;
        rc = *own ? 0 : -ENOMEM;
    } else if (rc == 0) {
        if (err)
            snprintf(err->text, sizeof err->text, "%.100s has no message at %llu ns",
                     topic, (unsigned long long)log_ns);
        rc = -ENOENT;
    }
    logbook_cursor_free(c);
    return rc;
}
