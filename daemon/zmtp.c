// https://rfc.zeromq.org/spec/23: a greeting of 64 bytes, then frames: flags, size, body.
#include "daemon/zmtp.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define GREETING     64
#define FLAG_LONG    2
#define FLAG_COMMAND 4

const uint8_t zmtp_hello[ZMTP_HELLO] = {
    [0] = 0xff, [9] = 0x7f, [10] = 3, // 3.0: a 3.1 peer then subscribes as a 3.0 one does
    [12] = 'N', 'U',        'L',      'L', [GREETING] = FLAG_COMMAND,
    25,         5,          'R',      'E', 'A',
    'D',        'Y',        11,       'S', 'o',
    'c',        'k',        'e',      't', '-',
    'T',        'y',        'p',      'e', 0,
    0,          0,          3,        'P', 'U',
    'B'};

static size_t header_size(const struct zmtp *z)
{
    return z->held[0] & FLAG_LONG ? 9 : 2;
}

static uint64_t body_size(const struct zmtp *z)
{
    uint64_t size = 0;

    for (size_t i = 1; i < header_size(z); i++)
        size = size << 8 | z->held[i];
    return size;
}

// Commands are few and short, and say what we want to know.
static bool keeps(const struct zmtp *z)
{
    return (z->held[0] & FLAG_COMMAND) && body_size(z) <= ZMTP_HELD - ZMTP_HEADER;
}

// How much of what is being read has to be there before the next step.
static size_t wanted(const struct zmtp *z)
{
    if (z->stage == ZMTP_GREETING)
        return GREETING;
    if (z->n < 1 || z->n < header_size(z))
        return z->n < 1 ? 1 : header_size(z);
    return header_size(z) + (keeps(z) ? (size_t)body_size(z) : 0);
}

static int take_greeting(struct zmtp *z)
{
    static const uint8_t null[20] = "NULL";

    if (z->held[0] != 0xff || !(z->held[9] & 1) || z->held[10] < 3 ||
        memcmp(z->held + 12, null, sizeof null) != 0)
        return -EPROTO;
    z->stage = ZMTP_READY;
    return 0;
}

static bool subscriber(const uint8_t *body, size_t n)
{
    static const char sub[] = "\x0bSocket-Type\0\0\0\3SUB";
    static const char xsub[] = "\x0bSocket-Type\0\0\0\4XSUB";

    return memmem(body, n, sub, sizeof sub - 1) || memmem(body, n, xsub, sizeof xsub - 1);
}

static void take_ping(struct zmtp *z, const uint8_t *body, size_t n)
{
    if (n < 7 || memcmp(body, "\4PING", 5) != 0) // and two bytes of time to live
        return;
    z->ping_size = n - 7 < ZMTP_PING ? n - 7 : ZMTP_PING;
    memcpy(z->ping, body + 7, z->ping_size);
    z->pings++;
}

static int take_frame(struct zmtp *z)
{
    const uint8_t *body = z->held + header_size(z);
    uint64_t size = body_size(z);

    if (size > ZMTP_FRAME)
        return -EPROTO;
    if (z->stage == ZMTP_READY) {
        if (!keeps(z) || size < 6 || memcmp(body, "\5READY", 6) != 0 ||
            !subscriber(body, (size_t)size))
            return -EPROTO;
        z->stage = ZMTP_OPEN;
    } else if (keeps(z)) {
        take_ping(z, body, (size_t)size);
    } else {
        z->skip = size;
    }
    return 0;
}

int zmtp_hear(struct zmtp *z, const uint8_t *bytes, size_t n)
{
    z->said += n;
    while (n > 0) {
        size_t take = z->skip ? (size_t)z->skip : wanted(z) - z->n;

        take = take < n ? take : n;
        if (z->skip) {
            z->skip -= take;
        } else {
            memcpy(z->held + z->n, bytes, take);
            z->n += take;
        }
        bytes += take;
        n -= take;
        if (z->n > 0 && z->n == wanted(z)) {
            int rc = z->stage == ZMTP_GREETING ? take_greeting(z) : take_frame(z);

            z->n = 0;
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

size_t zmtp_header(uint8_t out[ZMTP_HEADER], size_t size)
{
    if (size < 256) {
        out[0] = 0;
        out[1] = (uint8_t)size;
        return 2;
    }
    out[0] = FLAG_LONG;
    for (int i = 0; i < 8; i++)
        out[1 + i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
    return 9;
}

size_t zmtp_pong(struct zmtp *z, uint8_t out[ZMTP_COMMAND])
{
    static const uint8_t name[5] = {4, 'P', 'O', 'N', 'G'};

    if (z->pings == 0)
        return 0;
    z->pings = 0;
    out[0] = FLAG_COMMAND;
    out[1] = (uint8_t)(sizeof name + z->ping_size);
    memcpy(out + 2, name, sizeof name);
    memcpy(out + 2 + sizeof name, z->ping, z->ping_size);
    return 2 + sizeof name + z->ping_size;
}
