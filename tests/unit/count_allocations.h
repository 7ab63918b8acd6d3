// Counts what a thread asks of the allocator while it says so: this program's malloc and
// the rest of them, around glibc's own. Under a sanitizer, which owns malloc itself,
// nothing is counted and COUNTS_ALLOCATIONS is 0. One file of a program includes it once.
#ifndef TEST_COUNT_ALLOCATIONS_H
#define TEST_COUNT_ALLOCATIONS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__has_feature) // clang's way to tell
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

// Of this thread: the others may allocate meanwhile. volatile, since compilers know that
// a malloc reads no variables, and would leave out a true that is false right after.
__attribute__((unused)) static _Thread_local volatile bool counting;
// And releases, of all threads that count.
__attribute__((unused)) static _Atomic long allocations;

#if COUNTS_ALLOCATIONS
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
    allocations += counting;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    allocations += counting;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    allocations += counting;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    allocations += counting;
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    allocations += counting;
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : ENOMEM;
}

void free(void *p)
{
    allocations += counting;
    __libc_free(p);
}
#endif

#endif
