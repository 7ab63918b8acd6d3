// Counts what each thread of a program asks of the allocator and of the kernel's memory calls,
// by the thread's name, in a file that others can look into while it runs:
//
//   LD_PRELOAD=libcount.so SWAPS_COUNT=FILE actd …
//
// malloc and the rest of them are this file's, around glibc's own (as
// tests/unit/count_allocations.h does inside one program). glibc's own calls of mmap are not
// seen, but those only follow an allocation.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/swap/count.h"

#define NOW_AND_THEN 512 // calls, until a thread is asked again what it is called

static struct count_table *table;
static void *(*next_mmap)(void *, size_t, int, int, int, off_t);
static int (*next_munmap)(void *, size_t);

// No allocation of their own when a thread first touches them.
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD int place;          // in the table, from 1; 0 = not known yet
OF_THREAD unsigned calls;     // since the thread was asked
OF_THREAD unsigned questions; // put to it so far

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

static int find(const char *name)
{
    for (int i = 0; i < COUNT_THREADS; i++) {
        struct count_row *r = &table->row[i];
        int state = 0;

        if (__atomic_compare_exchange_n(&r->state, &state, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE)) {
            memcpy(r->name, name, sizeof r->name);
            __atomic_store_n(&r->state, 2, __ATOMIC_RELEASE);
            return i + 1;
        }
        while (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == 1)
            ;
        if (strncmp(r->name, name, sizeof r->name) == 0)
            return i + 1;
    }
    return COUNT_THREADS;
}

// A thread is born with its maker's name: it is asked at each of its first calls, then less.
static struct count_row *row(void)
{
    char name[16] = "";

    if (!table)
        return NULL;
    if (place == 0 || questions < 64 || ++calls >= NOW_AND_THEN) {
        prctl(PR_GET_NAME, name);
        place = find(name);
        questions += questions < 64;
        calls = 0;
    }
    return &table->row[place - 1];
}

static void note(enum count_kind kind, void *from)
{
    struct count_row *r = row();

    if (!r)
        return;
    __atomic_fetch_add(&r->count[kind], 1, __ATOMIC_RELAXED);
    if (kind != COUNT_FREE)
        r->from = (uint64_t)(uintptr_t)from;
}

__attribute__((constructor)) static void begin(void)
{
    const char *file = getenv("SWAPS_COUNT");
    int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    next_mmap = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    next_munmap = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
    if (fd >= 0 && ftruncate(fd, sizeof *table) == 0) {
        void *p =
            next_mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        table = p == MAP_FAILED ? NULL : p;
    }
    if (fd >= 0)
        close(fd);
}

void *malloc(size_t n)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    return __libc_realloc(p, n);
}

void *memalign(size_t alignment, size_t n)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    return __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    return __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    note(COUNT_MALLOC, __builtin_return_address(0));
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : ENOMEM;
}

void free(void *p)
{
    if (p)
        note(COUNT_FREE, __builtin_return_address(0));
    __libc_free(p);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    note(COUNT_MMAP, __builtin_return_address(0));
    if (!next_mmap) // before our constructor
        next_mmap =
            (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    return next_mmap(at, n, protection, flags, fd, offset);
}

int munmap(void *at, size_t n)
{
    note(COUNT_FREE, __builtin_return_address(0));
    if (!next_munmap)
        next_munmap = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
    return next_munmap(at, n);
}
