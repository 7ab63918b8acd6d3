#include "policy/arena.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096 // bytes; where pages are larger, some are touched twice

void *arena_take(struct arena *a, size_t n, size_t size)
{
    size_t bytes, end;
    if (__builtin_mul_overflow(n, size, &bytes) ||
        __builtin_add_overflow(bytes, ARENA_ALIGN - 1, &bytes) ||
        __builtin_add_overflow(a->used, bytes & ~(size_t)(ARENA_ALIGN - 1), &end) ||
        (a->base && end > a->size)) {
        a->overflow = true;
        return NULL;
    }
    void *p = a->base ? a->base + a->used : NULL;
    a->used = end;
    return p;
}

float *arena_floats(struct arena *a, size_t n)
{
    return arena_take(a, n, sizeof(float));
}

// mlock brings every page in; where it is not allowed, a write does. The kernel's pages are
// zero already: clearing them again went over 280 MiB for nothing.
static bool bring_in(char *p, size_t size)
{
    bool locked = mlock(p, size) == 0;
    for (size_t i = 0; !locked && i < size; i += PAGE)
        *(volatile char *)(p + i) = 0;
    return locked;
}

int arena_reserve(struct arena *a)
{
    if (a->base)
        return -EINVAL;
    if (a->overflow || a->used > SIZE_MAX / 2)
        return -EOVERFLOW;
    size_t size = a->used ? a->used : ARENA_ALIGN;
    void *p =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    // Advice only: with 2 MiB pages a policy needs 140 TLB entries instead of 72 000, and 300 MiB are
    // there in 25 ms instead of 230. In a virtual machine the host may first have to find the memory,
    // in pages of its own: 2.3 ms for each MiB that no program of the guest has used before (2 GiB:
    // 4.7 s, the next time 0.09 s). No advice spares that.
    (void)madvise(p, size, MADV_HUGEPAGE);
    *a = (struct arena){.base = p, .size = size, .locked = bring_in(p, size)};
    return 0;
}

void arena_release(struct arena *a)
{
    if (a->base)
        (void)munmap(a->base, a->size); // of our own mapping: cannot fail
    *a = (struct arena){0};
}
