// fuzz_zmtp: what a peer of our PUB sockets says, in pieces of any size. However it is cut, it must
// be taken the same way; and a twin that has all of it in one piece, and reads it as the protocol's
// page has it (greeting, then flags, size, body), must agree on the stage, on whether the peer is
// put up with, on PINGs, and on what comes back. Nothing is allocated, nothing read twice.
//
// The input: a byte that says how it is cut, a byte of settings (1: our own greeting goes first, 2:
// so does a SUB's READY), then what the peer says.
#include <errno.h>
#include <sanitizer/allocator_interface.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/zmtp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 65536

static _Thread_local bool watched;

static void must(int promise)
{
    if (!promise)
        abort();
}

static void on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    (void)size;
    must(!watched);
}

static void on_free(const volatile void *p)
{
    (void)p;
    must(!watched);
}

// ---- the twin --------------------------------------------------------------------------------

struct twin {
    bool open, refused;
    const uint8_t *ping; // body of the newest PING behind its time to live
    size_t ping_size;
    int pings;
};

static bool has(const uint8_t *body, size_t n, const char *what, size_t size)
{
    for (size_t i = 0; i + size <= n; i++)
        if (memcmp(body + i, what, size) == 0)
            return true;
    return false;
}

static bool greets(const uint8_t *s)
{
    const uint8_t mechanism[20] = {'N', 'U', 'L', 'L'};

    return s[0] == 0xff && (s[9] & 1) && s[10] >= 3 && memcmp(s + 12, mechanism, 20) == 0;
}

// A whole command; false: not to be put up with.
static bool twin_command(struct twin *t, const uint8_t *body, size_t n)
{
    if (!t->open) {
        t->open = n >= 6 && memcmp(body, "\5READY", 6) == 0 &&
                  (has(body, n, "\x0bSocket-Type\0\0\0\3SUB", 19) ||
                   has(body, n, "\x0bSocket-Type\0\0\0\4XSUB", 20));
        return t->open;
    }
    if (n >= 7 && memcmp(body, "\4PING", 5) == 0) {
        t->pings++;
        t->ping = body + 7;
        t->ping_size = n - 7 < ZMTP_PING ? n - 7 : ZMTP_PING;
    }
    return true;
}

static void twin_hear(struct twin *t, const uint8_t *s, size_t n)
{
    size_t at = 64;

    if (n < 64)
        return;
    t->refused = !greets(s);
    while (!t->refused && at < n) {
        size_t head = s[at] & 2 ? 9 : 2;
        uint64_t body = 0;
        bool kept;

        if (n - at < head)
            return;
        for (size_t i = 1; i < head; i++)
            body = body * 256 + s[at + i];
        kept = (s[at] & 4) && body <= ZMTP_HELD - ZMTP_HEADER;
        if (kept && n - at - head < body)
            return;
        if (body > ZMTP_FRAME || (!t->open && !kept))
            t->refused = true;
        else if (kept)
            t->refused = !twin_command(t, s + at + head, (size_t)body);
        if (n - at - head < body)
            return;
        at += head + (size_t)body;
    }
}

// ---- ours ------------------------------------------------------------------------------------

static int hear_cut(struct zmtp *z, const uint8_t *s, size_t n, unsigned cut)
{
    unsigned state = cut * 2654435761u + 1;
    int rc = 0;

    for (size_t at = 0; at < n && rc == 0;) {
        size_t part = cut == 0 ? n : 1 + (state >> 24) % (cut < 128 ? cut : 9000);

        part = part < n - at ? part : n - at;
        rc = zmtp_hear(z, s + at, part);
        must(z->n <= ZMTP_HELD && z->ping_size <= ZMTP_PING);
        state = state * 1664525u + 1013904223u;
        at += part;
    }
    return rc;
}

static void answers(struct zmtp *z, const struct twin *t)
{
    uint8_t pong[ZMTP_COMMAND];
    size_t n = zmtp_pong(z, pong);

    must((n > 0) == (t->pings > 0));
    if (n == 0)
        return;
    must(n == 7 + t->ping_size && pong[0] == 4 && pong[1] == n - 2);
    must(memcmp(pong + 2, "\4PONG", 5) == 0);
    must(memcmp(pong + 7, t->ping, t->ping_size) == 0);
    must(zmtp_pong(z, pong) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t ready[] = "\4\x19\5READY\x0bSocket-Type\0\0\0\3SUB";
    static uint8_t said[MOST];
    static bool hooked;
    struct zmtp z = {0};
    struct twin t = {0};
    size_t n = 0;
    int rc;

    if (!hooked)
        hooked = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
    must(hooked);
    if (size < 2 || size > MOST / 2)
        return 0;
    if (data[1] & 1) {
        memcpy(said, zmtp_hello, 64);
        n = 64;
        if (data[1] & 2) {
            memcpy(said + n, ready, sizeof ready - 1);
            n += sizeof ready - 1;
        }
    }
    memcpy(said + n, data + 2, size - 2);
    n += size - 2;
    twin_hear(&t, said, n);
    watched = true;
    rc = hear_cut(&z, said, n, data[0]);
    watched = false;
    must(rc == (t.refused ? -EPROTO : 0));
    must((z.stage == ZMTP_OPEN) == t.open);
    if (!t.refused)
        answers(&z, &t);
    return 0;
}
