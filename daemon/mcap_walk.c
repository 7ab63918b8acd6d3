// mcap_walk: record after record, from the beginning. Each is judged before it is handed out: by
// itself (mcap_read_check.c), and by what came before it.
#include "daemon/mcap_read_impl.h"

#include <errno.h>
#include <string.h>

void mcap_scan_begin(struct mcap_scan *s, struct mcap_file *f,
                     const struct mcap_limits *l)
{
    *s = (struct mcap_scan){.file = f, .limits = l, .chunk_at = UINT64_MAX};
}

void mcap_scan_free(struct mcap_scan *s)
{
    mcap_unpacked_free(&s->chunk);
}

int mcap_scan_magic(struct mcap_scan *s, struct mcap_error *err)
{
    const unsigned char *p;

    if (s->file->size == 0)
        return mcap_fail(err, -EINVAL, "is empty: nothing was recorded into it");
    if (s->file->size < MCAP_MAGIC_BYTES)
        return mcap_fail(err, -EINVAL, "is too short to be an MCAP file");
    int rc = mcap_file_get(s->file, 0, MCAP_MAGIC_BYTES, &p, err);
    if (rc != 0)
        return rc;
    if (memcmp(p, mcap_magic, MCAP_MAGIC_BYTES) != 0)
        return mcap_fail(err, -EINVAL, "is no MCAP file: it does not begin like one");
    s->crc = mcap_crc(0, p, MCAP_MAGIC_BYTES);
    s->at = MCAP_MAGIC_BYTES;
    return 0;
}

// ---- one record against those before it -------------------------------------------------------

static int message(struct mcap_scan *s, const struct mcap_record *r,
                   struct mcap_error *err)
{
    struct mcap_message m = mcap_message_parse(r);

    if (!s->any_channel && !mcap_ids_has(&s->channels, m.channel))
        return mcap_fail(err, -EBADMSG,
                         "byte %llu: a message of channel %u, which is not declared",
                         (unsigned long long)s->at, m.channel);
    s->loose += !r->in_chunk;
    return 0;
}

static int chunk_records(struct mcap_scan *s, struct mcap_error *err)
{
    struct mcap_record r;
    int rc;

    for (size_t at = 0; (rc = mcap_inner_next(&s->chunk, &at, &r, err)) == 1;) {
        if (r.op == MCAP_CHANNEL)
            mcap_ids_add(&s->channels, (uint16_t)(r.content[0] | r.content[1] << 8));
        if (r.op == MCAP_MESSAGE && message(s, &r, err) != 0)
            return -EBADMSG;
    }
    return rc;
}

static int chunk(struct mcap_scan *s, const struct mcap_record *r, struct mcap_error *err)
{
    struct mcap_chunk_head h;
    struct mcap_error why = {""};
    int rc = mcap_chunk_parse(r->content, r->length, s->limits, &h, &why);

    if (rc == 0)
        rc = mcap_unpack(&s->chunk, &h, &why);
    if (rc == 0)
        rc = chunk_records(s, &why);
    if (rc != 0) {
        s->chunk.n = 0;
        return mcap_fail(err, rc, "byte %llu: %.200s", (unsigned long long)s->at,
                         why.text);
    }
    s->chunk_at = s->at;
    return 0;
}

// Every entry must point at a message of that channel and time in the chunk before.
static int message_index(struct mcap_scan *s, const struct mcap_record *r,
                         struct mcap_error *err)
{
    struct mcap_in in = {r->content, (size_t)r->length, false};
    uint16_t channel = (uint16_t)mcap_take(&in, 2);
    struct mcap_in a = mcap_take_array(&in);

    if (s->chunk_at == UINT64_MAX)
        return mcap_fail(err, -EBADMSG, "the MessageIndex at byte %llu follows no chunk",
                         (unsigned long long)s->at);
    while (a.left > 0) {
        uint64_t log_ns = mcap_take(&a, 8), offset = mcap_take(&a, 8);
        struct mcap_in to = {s->chunk.data, s->chunk.n, false};
        mcap_take_bytes(&to, offset);
        uint64_t op = mcap_take(&to, 1), n = mcap_take(&to, 8);
        uint64_t id = mcap_take(&to, 2);
        mcap_take_bytes(&to, 4);
        uint64_t at_ns = mcap_take(&to, 8);
        if (to.bad || op != MCAP_MESSAGE || n < MCAP_MESSAGE_FIXED || id != channel ||
            at_ns != log_ns)
            return mcap_fail(
                err, -EBADMSG,
                "the MessageIndex at byte %llu points at no message of channel "
                "%u in its chunk",
                (unsigned long long)s->at, channel);
    }
    return 0;
}

static int data_end(struct mcap_scan *s, const struct mcap_record *r,
                    struct mcap_error *err)
{
    struct mcap_in in = {r->content, (size_t)r->length, false};
    uint32_t crc = (uint32_t)mcap_take(&in, 4);

    if (crc && !s->crc_unknown && crc != s->crc)
        return mcap_fail(
            err, -EBADMSG,
            "the bytes before the DataEnd at byte %llu do not have the CRC that "
            "it says: something there was changed",
            (unsigned long long)s->at);
    s->data_ended = true;
    return 0;
}

static int end_magic(struct mcap_scan *s, uint64_t at, struct mcap_error *err)
{
    const unsigned char *p;
    int rc;

    if (s->file->size - at != MCAP_MAGIC_BYTES)
        return mcap_fail(err, -EBADMSG,
                         "byte %llu: after the Footer there are %llu bytes, "
                         "not the 8 of the end",
                         (unsigned long long)at,
                         (unsigned long long)(s->file->size - at));
    rc = mcap_file_get(s->file, at, MCAP_MAGIC_BYTES, &p, err);
    if (rc != 0)
        return rc;
    if (memcmp(p, mcap_magic, MCAP_MAGIC_BYTES) != 0)
        return mcap_fail(err, -EBADMSG,
                         "byte %llu: the file does not end like an MCAP file",
                         (unsigned long long)at);
    return 0;
}

// Moves the window: nothing of the record is looked at afterwards but these three numbers.
static int footer(struct mcap_scan *s, const struct mcap_record *r,
                  struct mcap_error *err)
{
    struct mcap_in in = {r->content, (size_t)r->length, false};
    uint64_t start = mcap_take(&in, 8), offsets = mcap_take(&in, 8), end = s->at;
    uint32_t want = (uint32_t)mcap_take(&in, 4), crc = 0;
    int rc;

    if (!s->data_ended)
        return mcap_fail(err, -EBADMSG, "the Footer at byte %llu comes without a DataEnd",
                         (unsigned long long)end);
    if (start > end || offsets > end || (offsets && offsets < start))
        return mcap_fail(err, -EBADMSG,
                         "the Footer at byte %llu points at a summary that is not there",
                         (unsigned long long)end);
    if (want) {
        rc = mcap_file_crc(s->file, start ? start : end, end + MCAP_HEAD + 16, &crc, err);
        if (rc != 0)
            return rc;
        if (crc != want)
            return mcap_fail(err, -EBADMSG,
                             "the summary at byte %llu does not have its CRC",
                             (unsigned long long)(start ? start : end));
    }
    rc = end_magic(s, end + MCAP_HEAD + MCAP_FOOTER_BYTES, err);
    s->ended = rc == 0;
    return rc;
}

static int judge(struct mcap_scan *s, const struct mcap_record *r, struct mcap_error *err)
{
    bool data =
        r->op == MCAP_MESSAGE || r->op == MCAP_CHUNK || r->op == MCAP_MESSAGE_INDEX;

    if ((s->at == MCAP_MAGIC_BYTES) != (r->op == MCAP_HEADER) || (data && s->data_ended))
        return mcap_fail(err, -EBADMSG, "byte %llu: no %s can be there",
                         (unsigned long long)s->at, mcap_op_name(r->op));
    if (r->op != MCAP_MESSAGE_INDEX && r->op <= MCAP_DATA_END)
        s->chunk_at = UINT64_MAX;
    switch (r->op) {
    case MCAP_CHANNEL:
        mcap_ids_add(&s->channels, (uint16_t)(r->content[0] | r->content[1] << 8));
        return 0;
    case MCAP_MESSAGE:
        return message(s, r, err);
    case MCAP_CHUNK:
        return chunk(s, r, err);
    case MCAP_MESSAGE_INDEX:
        return message_index(s, r, err);
    case MCAP_DATA_END:
        return data_end(s, r, err);
    case MCAP_FOOTER:
        return footer(s, r, err);
    default:
        return 0;
    }
}

// ---- the next one -------------------------------------------------------------------------------

static int head(struct mcap_scan *s, struct mcap_record *r, struct mcap_error *err)
{
    uint64_t left = s->file->size - s->at;
    const unsigned char *p = NULL;
    int rc;

    if (left < MCAP_HEAD)
        return mcap_fail(err, -EBADMSG,
                         left == 0
                             ? "ends at byte %llu without DataEnd and Footer: it was "
                               "never finished"
                             : "ends at byte %llu in the middle of a record: it was cut",
                         (unsigned long long)s->file->size);
    rc = mcap_file_get(s->file, s->at, MCAP_HEAD, &p, err);
    if (rc != 0)
        return rc;
    struct mcap_in in = {p, MCAP_HEAD, false};
    *r = (struct mcap_record){.op = (uint8_t)mcap_take(&in, 1), .offset = s->at};
    r->length = mcap_take(&in, 8);
    if (r->op == 0)
        return mcap_fail(err, -EBADMSG, "byte %llu: there is no record there",
                         (unsigned long long)s->at);
    if (r->length > left - MCAP_HEAD)
        return mcap_fail(
            err, -EBADMSG,
            "the %s at byte %llu says it has %llu bytes, but only %llu are left",
            mcap_op_name(r->op), (unsigned long long)s->at, (unsigned long long)r->length,
            (unsigned long long)(left - MCAP_HEAD));
    return 0;
}

static int content(struct mcap_scan *s, struct mcap_record *r, struct mcap_error *err)
{
    uint64_t limit = mcap_record_limit(r->op, s->limits);
    const unsigned char *p = NULL;
    int rc;

    if (r->length > limit && s->pass_large &&
        (r->op == MCAP_ATTACHMENT || r->op > MCAP_DATA_END)) {
        s->crc_unknown = true;
        return 0;
    }
    if (r->length > limit)
        return mcap_fail(err, -EFBIG,
                         "the %s at byte %llu has %llu bytes; %llu are allowed",
                         mcap_op_name(r->op), (unsigned long long)s->at,
                         (unsigned long long)r->length, (unsigned long long)limit);
    rc = mcap_file_get(s->file, s->at, MCAP_HEAD + (size_t)r->length, &p, err);
    if (rc != 0)
        return rc;
    r->content = p + MCAP_HEAD;
    rc = mcap_record_check(r, err);
    if (rc == 0)
        rc = judge(s, r, err);
    if (rc == 0 && !s->data_ended && !s->crc_unknown)
        s->crc = mcap_crc(s->crc, p, MCAP_HEAD + (size_t)r->length);
    return rc;
}

int mcap_scan_next(struct mcap_scan *s, struct mcap_record *r, struct mcap_error *err)
{
    int rc;

    *r = (struct mcap_record){0};
    if (s->ended)
        return 0;
    rc = head(s, r, err);
    if (rc == 0)
        rc = content(s, r, err);
    if (rc != 0)
        return rc;
    s->at += MCAP_HEAD + r->length;
    if (!s->ended)
        return 1;
    // The window moved.
    const unsigned char *p = NULL;
    rc = mcap_file_get(s->file, r->offset, MCAP_HEAD + MCAP_FOOTER_BYTES, &p, err);
    r->content = rc == 0 ? p + MCAP_HEAD : NULL;
    return rc == 0 ? 1 : rc;
}

// ---- for others -------------------------------------------------------------------------------

static int visit_chunk(struct mcap_scan *s,
                       int (*visit)(void *, const struct mcap_record *), void *arg)
{
    struct mcap_record r;
    int rc;

    for (size_t at = 0; (rc = mcap_inner_next(&s->chunk, &at, &r, NULL)) == 1;)
        if ((rc = visit(arg, &r)) != 0)
            return rc;
    return rc;
}

int mcap_walk(const char *path, const struct mcap_limits *limits,
              int (*visit)(void *arg, const struct mcap_record *r), void *arg,
              struct mcap_error *err)
{
    struct mcap_limits l = mcap_limits_of(limits);
    struct mcap_error why = {""};
    struct mcap_file f;
    struct mcap_scan s;
    struct mcap_record r;
    int rc = mcap_file_open(&f, path, err), more;

    if (rc != 0)
        return rc;
    mcap_scan_begin(&s, &f, &l);
    rc = mcap_scan_magic(&s, &why);
    while (rc == 0 && (more = mcap_scan_next(&s, &r, &why)) != 0) {
        rc = more < 0 ? more : visit(arg, &r);
        if (rc == 0 && r.op == MCAP_CHUNK)
            rc = visit_chunk(&s, visit, arg);
    }
    if (rc < 0 && why.text[0])
        mcap_fail(err, rc, "%.150s: %.200s", path, why.text);
    mcap_scan_free(&s);
    mcap_file_close(&f);
    return rc;
}
