// Our half of the conversation with a subscriber, against bytes that libzmq 4.3.4 sent and a
// twin that keeps everything.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/zmtp.h"
#include "tests/golden_gen.h"

// What a SUB with topics "" and "abc" says, from its first byte.
static const uint8_t spoken[100] = {
    [0] = 0xff, [8] = 1,    [9] = 0x7f, [10] = 3,   [11] = 1,   [12] = 'N', [13] = 'U',
    [14] = 'L', [15] = 'L', [64] = 4,   [65] = 25,  [66] = 5,   [67] = 'R', [68] = 'E',
    [69] = 'A', [70] = 'D', [71] = 'Y', [72] = 11,  [73] = 'S', [74] = 'o', [75] = 'c',
    [76] = 'k', [77] = 'e', [78] = 't', [79] = '-', [80] = 'T', [81] = 'y', [82] = 'p',
    [83] = 'e', [87] = 3,   [88] = 'S', [89] = 'U', [90] = 'B', [91] = 0,   [92] = 1,
    [93] = 1,   [94] = 0,   [95] = 4,   [96] = 1,   [97] = 'a', [98] = 'b', [99] = 'c'};
#define HANDSHAKE 91

static struct zmtp opened(void)
{
    struct zmtp z = {0};

    assert_int_equal(zmtp_hear(&z, spoken, HANDSHAKE), 0);
    assert_int_equal(z.stage, ZMTP_OPEN);
    return z;
}

static void a_real_subscriber_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof spoken; piece++) {
        struct zmtp z = {0};

        for (size_t at = 0; at < sizeof spoken; at += piece) {
            size_t n = sizeof spoken - at < piece ? sizeof spoken - at : piece;

            assert_int_equal(zmtp_hear(&z, spoken + at, n), 0);
            assert_int_equal(z.stage, at + n < 64          ? ZMTP_GREETING
                                      : at + n < HANDSHAKE ? ZMTP_READY
                                                           : ZMTP_OPEN);
        }
        assert_int_equal(z.said, sizeof spoken);
        assert_int_equal(z.pings, 0);
    }
}

// Every byte that has a meaning, made another.
static void strangers_are_told_from_subscribers(void **state)
{
    static const size_t meant[] = {0,  9,  10, 12, 15, 20, 31, 64, 66, 67,
                                   71, 72, 73, 83, 84, 87, 88, 89, 90};

    (void)state;
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        struct zmtp z = {0};
        uint8_t said[HANDSHAKE];

        memcpy(said, spoken, sizeof said);
        // An old version; a message instead of a command.
        said[meant[i]] ^= meant[i] == 10 ? 2 : meant[i] == 64 ? 4 : 1;
        said[9] ^= meant[i] == 9 ? 0x7e : 0;
        if (zmtp_hear(&z, said, sizeof said) != -EPROTO)
            fail_msg("byte %zu is not looked at", meant[i]);
        assert_int_not_equal(z.stage, ZMTP_OPEN);
    }
    for (size_t i = 32; i < 64; i++) { // as-server and filler mean nothing here
        struct zmtp z = {0};
        uint8_t said[HANDSHAKE];

        memcpy(said, spoken, sizeof said);
        said[i] ^= 1;
        assert_int_equal(zmtp_hear(&z, said, sizeof said), 0);
    }
}

static void a_message_before_ready_is_no_subscriber(void **state)
{
    struct zmtp z = {0};

    (void)state;
    assert_int_equal(zmtp_hear(&z, spoken, 64), 0);
    assert_int_equal(zmtp_hear(&z, (const uint8_t *)"\0\1\1", 3), -EPROTO);
}

static void a_long_ready_is_none(void **state)
{
    uint8_t frame[9 + 400] = {6, 0, 0, 0, 0, 0, 0, 1, 0x90};
    struct zmtp z = {0};

    (void)state;
    memcpy(frame + 9, spoken + 66, 25);
    assert_int_equal(zmtp_hear(&z, spoken, 64), 0);
    assert_int_equal(zmtp_hear(&z, frame, sizeof frame), -EPROTO);
}

// A claim is believed or not when it is made: nothing waits for its bytes.
static void sizes_up_to_the_cap(void **state)
{
    static const uint64_t size[] = {0,    1,    255,      256,       4095,
                                    4096, 4097, 1u << 31, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int command = 0; command < 2; command++) {
            struct zmtp z = opened();
            uint8_t frame[9] = {(uint8_t)(2 | command << 2)}, nothing[4096] = {0};

            for (int k = 0; k < 8; k++)
                frame[1 + k] = (uint8_t)(size[i] >> (56 - 8 * k));
            assert_int_equal(zmtp_hear(&z, frame, 9), size[i] > 4096 ? -EPROTO : 0);
            if (size[i] > 4096)
                continue;
            assert_int_equal(zmtp_hear(&z, nothing, (size_t)size[i]), 0);
            assert_int_equal(zmtp_hear(&z, (const uint8_t *)"\4\7\4PING\0\1", 9), 0);
            assert_int_equal(z.pings, 1); // so it is at the right place
        }
}

static void a_ping_is_answered_with_what_it_said(void **state)
{
    (void)state;
    for (uint8_t n = 0; n < 40; n++) {
        uint8_t ping[64] = {4, (uint8_t)(7 + n), 4, 'P', 'I', 'N', 'G', 0, 9}, pong[32];
        size_t kept = n < ZMTP_PING ? n : ZMTP_PING;
        struct zmtp z = opened();

        memset(ping + 9, 'a' + n % 26, n);
        assert_int_equal(zmtp_pong(&z, pong), 0);
        assert_int_equal(zmtp_hear(&z, ping, (size_t)9 + n), 0);
        assert_int_equal(zmtp_pong(&z, pong), 7 + kept);
        assert_memory_equal(pong + 2, "\4PONG", 5);
        assert_int_equal(pong[0], 4);
        assert_int_equal(pong[1], 5 + kept);
        assert_memory_equal(pong + 7, ping + 9, kept);
        assert_int_equal(zmtp_pong(&z, pong), 0);
    }
}

// Keeps all of it and looks at whole frames only.
static int twin(const uint8_t *all, size_t n, int *pings)
{
    *pings = 0;
    for (size_t at = 0; at < n;) {
        size_t header = all[at] & 2 ? 9 : 2;
        uint64_t size = 0;

        if (at + header > n)
            return 0;
        for (size_t i = 1; i < header; i++)
            size = size * 256 + all[at + i];
        if (size > ZMTP_FRAME)
            return -EPROTO;
        if (at + header + size > n)
            return 0;
        *pings += (all[at] & 4) && size >= 7 && size <= ZMTP_HELD - ZMTP_HEADER &&
                  memcmp(all + at + header, "\4PING", 5) == 0;
        at += header + (size_t)size;
    }
    return 0;
}

static size_t random_frame(uint64_t key, size_t *k, uint8_t *out)
{
    uint64_t r = golden_int(key, (*k)++);
    size_t size = r % 5 == 0 ? (r >> 8) % 4000 : (r >> 8) % 40;
    size_t header = size > 255 || r % 7 == 0 ? 9 : 2;

    out[0] = (uint8_t)((header == 9 ? 2 : 0) | (r >> 40 & 4) | (r >> 50 & 1));
    if (r % 1000 == 0) {
        memset(out, 0xff, 9);
        return 9;
    }
    for (size_t i = 1; i < header; i++)
        out[i] = (uint8_t)((uint64_t)size >> (8 * (header - 1 - i)));
    for (size_t i = 0; i < size; i++)
        out[header + i] = (uint8_t)golden_int(key, (*k)++);
    if (size >= 7 && r >> 60 > 4)
        memcpy(out + header, "\4PING", 5);
    return header + size;
}

static void as_the_twin_reads_random_frames(void **state)
{
    static uint8_t all[300 * 4100];

    (void)state;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t key = golden_key(round, "zmtp");
        size_t n = 0, k = 0;
        struct zmtp z = opened();
        int pings, rc = 0, want;

        for (int i = 0; i < 100; i++)
            n += random_frame(key, &k, all + n);
        want = twin(all, n, &pings);
        for (size_t at = 0; at < n && rc == 0;) {
            size_t piece = 1 + golden_int(key, k++) % 500;

            piece = n - at < piece ? n - at : piece;
            rc = zmtp_hear(&z, all + at, piece);
            at += piece;
        }
        assert_int_equal(rc, want);
        assert_int_equal(z.pings, pings);
    }
}

// Whatever it is, no more than one read past what was given (a sanitizer would see it).
static void noise_is_survived(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 2000; round++) {
        uint64_t key = golden_key(round, "noise");
        struct zmtp z = round % 2 ? opened() : (struct zmtp){0};
        size_t n = golden_int(key, 0) % 9000;
        uint8_t *bytes = malloc(n + 1);

        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(golden_int(key, i + 1) % (round % 3 ? 256 : 8));
        (void)zmtp_hear(&z, bytes, n);
        assert_in_range(z.n, 0, ZMTP_HELD);
        free(bytes);
    }
}

static void headers(void **state)
{
    static const uint8_t large[9] = {2, 0, 0, 0, 0, 0, 1, 2, 3};
    uint8_t h[ZMTP_HEADER];

    (void)state;
    assert_int_equal(zmtp_header(h, 0), 2);
    assert_memory_equal(h, "\0\0", 2);
    assert_int_equal(zmtp_header(h, 255), 2);
    assert_memory_equal(h, "\0\xff", 2);
    assert_int_equal(zmtp_header(h, 256), 9);
    assert_memory_equal(h, "\2\0\0\0\0\0\0\1\0", 9);
    assert_int_equal(zmtp_header(h, 0x10203), 9);
    assert_memory_equal(h, large, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_subscriber_however_it_is_cut),
        cmocka_unit_test(strangers_are_told_from_subscribers),
        cmocka_unit_test(a_message_before_ready_is_no_subscriber),
        cmocka_unit_test(a_long_ready_is_none),
        cmocka_unit_test(sizes_up_to_the_cap),
        cmocka_unit_test(a_ping_is_answered_with_what_it_said),
        cmocka_unit_test(as_the_twin_reads_random_frames),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
