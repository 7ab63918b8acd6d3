// Bytes for the codec's tests: a fixed-seed generator, protobuf's wire format by hand,
// and a counter of allocations. One test program includes it once.
#ifndef TEST_WIRE_BYTES_H
#define TEST_WIRE_BYTES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define UNUSED  __attribute__((unused))
#define STAMP_S 1700000000

static uint64_t random_state = 7;
UNUSED static uint32_t random32(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

// ---- counting allocations (glibc only, not under a sanitizer) -------------------------

static uint64_t allocations;
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifndef __SANITIZE_ADDRESS__
#define COUNTS_ALLOCATIONS 1
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    allocations++;
    return __libc_calloc(n, size);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

struct bytes {
    uint8_t data[200 * 1024];
    size_t size;
};

UNUSED static void put(struct bytes *b, const void *data, size_t size)
{
    assert_true(b->size + size <= sizeof b->data);
    if (size > 0)
        memcpy(b->data + b->size, data, size);
    b->size += size;
}

UNUSED static void put_varint(struct bytes *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        put(b, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    put(b, &(uint8_t){(uint8_t)v}, 1);
}

UNUSED static void put_field(struct bytes *b, unsigned number, const void *data,
                             size_t size)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, size);
    put(b, data, size);
}

UNUSED static void put_fixed32(struct bytes *b, unsigned number, uint32_t v)
{
    put_varint(b, number << 3 | 5);
    put(b, &v, 4);
}

#endif
