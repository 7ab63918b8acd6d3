// malloc and its kin that say no after so many calls, from then on or once. Under a sanitizer, which owns malloc itself,
// MEMORY_ENDS is 0 and they never do. One file of a program includes it once.
#ifndef TEST_MEMORY_ENDS_H
#define TEST_MEMORY_ENDS_H

#include <stdbool.h>
#include <stddef.h>

__attribute__((unused)) static long allocations_left = -1; // < 0: no bound
__attribute__((unused)) static long allocations_made;
__attribute__((unused)) static bool allocations_fail_once;
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMORY_ENDS 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMORY_ENDS 0
#endif
#ifndef MEMORY_ENDS
#define MEMORY_ENDS 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static bool ended(void)
{
    allocations_made++;
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0 && allocations_fail_once)
        allocations_left = -1;
    else
        return allocations_left == 0;
    return allocations_left < 0;
}

void *malloc(size_t n)
{
    return ended() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return ended() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return ended() ? NULL : __libc_realloc(p, n);
}
#endif

#endif
