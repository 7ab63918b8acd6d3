// fuzz_safetensors: arbitrary bytes as a .safetensors file. Whatever opens must tile its data
// section exactly, be found under its own names, and read without touching memory it should not.
// Built by `make fuzz` (clang, libFuzzer, ASan, UBSan); also replays files given as arguments.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy/lerobot_names.h"
#include "policy/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A false claim is a finding: abort is how libFuzzer hears of it.
static void must(int truth)
{
    if (!truth)
        abort();
}

static void read_all(struct st_file *f)
{
    struct policy_error err;
    uint64_t end = 0;

    for (size_t i = 0; i < st_count(f); i++) {
        const struct st_tensor *t = st_at(f, i);
        size_t n = (size_t)st_elements(t);
        float *v = malloc(n * sizeof *v + 1);

        must(t->begin == end);
        must(st_find(f, t->name) == t);
        end += t->nbytes;
        if (v)
            st_read_f32(f, t, v, n, &err);
        free(v);
    }
}

static void build_names(const struct st_file *f)
{
    struct policy_error err;
    struct lr_names names;

    if (lr_names_build(&names, f, &err) == 0)
        for (size_t i = 0; i < names.n; i++)
            must(lr_names_find(&names, names.at[i].name) == &names.at[i]);
    lr_names_close(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1; // one file in memory for all inputs
    struct policy_error err;
    struct st_file *f;
    char path[64];

    if (fd < 0)
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, 0) == 0);
    must(pwrite(fd, data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (st_open(&f, path, &err) == 0) {
        read_all(f);
        build_names(f);
        st_close(f);
    }
    return 0;
}
