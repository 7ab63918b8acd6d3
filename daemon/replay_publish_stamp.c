// A live daemon refuses stamps of last week. The bytes are copied field by field, and only the
// stamp is made anew: what else is in a message, and in which order, stays.
#include <stdlib.h>
#include <string.h>

#include "daemon/replay_publish_impl.h"
#include "google/protobuf/timestamp.pb-c.h"

#define STAMP_TAG   0x0a // field 1, bytes
#define STAMP_BYTES 32   // more than any has

// Bytes of the varint at p, 0 when it does not end.
static size_t varint(const uint8_t *p, size_t n, uint64_t *v)
{
    *v = 0;
    for (size_t i = 0; i < n && i < 10; i++) {
        *v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (!(p[i] & 0x80))
            return i + 1;
    }
    return 0;
}

// Bytes of the field at p, its tag included; 0 when it is none.
static size_t field(const uint8_t *p, size_t n, size_t *content)
{
    uint64_t tag, size;
    size_t head = varint(p, n, &tag);
    *content = head;
    if (head == 0)
        return 0;
    switch (tag & 7) {
    case 0: {
        size_t more = varint(p + head, n - head, &size);
        return more ? head + more : 0;
    }
    case 1:
        return n - head >= 8 ? head + 8 : 0;
    case 5:
        return n - head >= 4 ? head + 4 : 0;
    case 2: {
        size_t more = varint(p + head, n - head, &size);
        *content = head + more;
        return more && size <= n - head - more ? head + more + (size_t)size : 0;
    }
    default:
        return 0;
    }
}

// The stamp at p, moved; 0 when it cannot be.
static size_t move_stamp(const uint8_t *p, size_t n, int64_t shift_ns,
                         uint8_t out[STAMP_BYTES])
{
    Google__Protobuf__Timestamp *t = google__protobuf__timestamp__unpack(NULL, n, p);
    Google__Protobuf__Timestamp moved = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    int64_t ns;
    bool bad = !t || t->seconds < 0 || t->seconds > INT64_C(9000000000) || t->nanos < 0 ||
               t->nanos > 999999999 ||
               __builtin_add_overflow(t->seconds * NS_PER_S + t->nanos, shift_ns, &ns) ||
               ns < 0;
    google__protobuf__timestamp__free_unpacked(t, NULL);
    if (bad)
        return 0;
    moved.seconds = ns / NS_PER_S;
    moved.nanos = (int32_t)(ns % NS_PER_S);
    size_t size = google__protobuf__timestamp__get_packed_size(&moved);
    out[0] = STAMP_TAG;
    out[1] = (uint8_t)size; // below 128
    return 2 + google__protobuf__timestamp__pack(&moved, out + 2);
}

size_t publish_restamp(const void *data, size_t size, int64_t shift_ns, void **out,
                       size_t *capacity)
{
    const uint8_t *p = data;
    size_t at = 0, n = 0, need = size + STAMP_BYTES;
    bool moved = false;
    if (need > *capacity) {
        void *more = realloc(*out, need);
        if (!more)
            return 0;
        *out = more;
        *capacity = need;
    }
    uint8_t *to = *out;
    while (at < size) {
        uint8_t stamp[STAMP_BYTES];
        size_t content, all = field(p + at, size - at, &content), is = 0;
        if (all == 0)
            break;
        if (p[at] == STAMP_TAG && !moved)
            is = move_stamp(p + at + content, all - content, shift_ns, stamp);
        moved = moved || is > 0;
        memcpy(to + n, is ? stamp : p + at, is ? is : all);
        n += is ? is : all;
        at += all;
    }
    memcpy(to + n, p + at, size - at); // what is no field stays, too
    return n + size - at;
}
