// memory: see the header.
#include "policy/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "policy/refuse.h"

#define RESERVE ((uint64_t)64 << 20) // for everything else that happens meanwhile

// "MemAvailable:   12345 kB" of /proc/meminfo, its third line. Bytes, 0 where it is hidden
// (ProcSubset=pid).
static uint64_t read_available(void)
{
    char text[512];
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *at;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    at = strstr(text, "MemAvailable:");
    return at ? strtoull(at + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

uint64_t memory_available(void)
{
    struct sysinfo s;
    uint64_t available = read_available();
    if (available || sysinfo(&s) < 0)
        return available;
    // freeram does not count the page cache, which any demand empties: half of everything is
    // nearer to the truth on a machine that has been up for a day.
    return (uint64_t)s.totalram * s.mem_unit / 2;
}

int memory_check(size_t bytes, struct policy_error *err)
{
    uint64_t available = memory_available();
    if (!available || (available > RESERVE && bytes <= available - RESERVE))
        return 0;
    return refuse(err, ENOMEM,
                  "the policy needs %zu MiB of memory and only %" PRIu64
                  " MiB are to spare: free memory, or check chunk_size and the image "
                  "shapes in config.json",
                  bytes >> 20, available >> 20);
}
