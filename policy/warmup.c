// warmup: see the header.
//
// OpenBLAS keeps one table of buffers for all threads; a product takes the first free one and
// maps it when nobody ever had it. So it is enough that one thread holds as many at once as
// there will be callers. (Products on all threads at once, in the hope that they overlap, were
// tried: on a busy machine that takes seconds, and never ends with more threads than cores.)
#include "policy/warmup.h"

#include <cblas.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "policy/pool.h"
#include "policy/refuse.h"

#define BUFFER ((size_t)128 << 20) // what OpenBLAS maps per concurrent caller
// The part of it that the products of a network use is brought in too: 3200 columns of 320
// floats, and a block of rows. Where mlockall is in force the rest stays untouched.
#define TOUCHED ((size_t)6 << 20)
#define PAGE    4096

// Exported by every OpenBLAS, declared in none of its headers.
__attribute__((weak)) void *blas_memory_alloc(int unused);
__attribute__((weak)) void blas_memory_free(void *buffer);

// OpenBLAS 0.3.21 tries again for ever when it is refused its buffer, so ask before it does.
static bool buffers_fit(size_t callers)
{
    void *p = mmap(NULL, callers * BUFFER, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, callers * BUFFER);
    return true;
}

static void map_buffers(int callers)
{
    char *buffer[POOL_MAX_THREADS + 1];
    for (int i = 0; i < callers; i++) {
        buffer[i] = blas_memory_alloc(0);
        for (size_t at = 0; buffer[i] && at < TOUCHED; at += PAGE)
            *(volatile char *)(buffer[i] + at) = 0;
    }
    for (int i = 0; i < callers; i++)
        if (buffer[i])
            blas_memory_free(buffer[i]);
}

int warmup_blas(int callers, struct policy_error *err)
{
    if (!blas_memory_alloc || !blas_memory_free)
        return refuse(err, EINVAL,
                      "this OpenBLAS hides how it maps its buffers, so it would do so "
                      "while the arm moves: install libopenblas0-pthread");
    openblas_set_num_threads(1);
    if (openblas_get_num_threads() != 1)
        return refuse(err, EINVAL,
                      "OpenBLAS keeps %d threads although 1 was asked for: install "
                      "libopenblas0-pthread",
                      openblas_get_num_threads());
    if (callers < 1 || callers > POOL_MAX_THREADS + 1)
        return refuse(err, EINVAL, "OpenBLAS can not be made ready for %d callers",
                      callers);
    if (!buffers_fit((size_t)callers))
        return refuse(err, ENOMEM,
                      "OpenBLAS needs %zu MiB of address space for %d threads, which the "
                      "system refused: raise the memory limits (LimitAS=, `ulimit -v`, "
                      "vm.overcommit_memory) or lower policy.threads",
                      (size_t)callers * BUFFER >> 20, callers);
    map_buffers(callers);
    return 0;
}
