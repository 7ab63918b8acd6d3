// Names of recordings: INSTANCE-20261129T201500Z-0001.mcap, -fault before .mcap when there is a
// fault in it, .part behind it until it is whole. Times are UTC, so that names sort by age. Only
// names of exactly this form and this instance are ever removed or recovered.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/recorder_parts.h"

#define MODE_DIRECTORY 0750

// ---- directory ---------------------------------------------------------------------------------

static int make_all(char *path)
{
    for (char *p = path + 1; *p != 0; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        if (mkdir(path, MODE_DIRECTORY) != 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return mkdir(path, MODE_DIRECTORY) != 0 && errno != EEXIST ? -errno : 0;
}

int recorder_directory(const char *path)
{
    char copy[PATH_MAX];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : -errno;
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy || copy[0] == 0)
        return -ENAMETOOLONG;
    rc = make_all(copy);
    if (rc != 0)
        return rc;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : -errno;
}

// ---- names -------------------------------------------------------------------------------------

// No slash, no leading dot, nothing that a shell or another system minds.
void recorder_instance_name(char *out, size_t size, const char *instance)
{
    snprintf(out, size < 100 ? size : 100, "%s",
             instance != NULL && instance[0] != 0 ? instance : "actd");
    for (char *p = out; *p != 0; p++) {
        bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_' || *p == '-' ||
                    (*p == '.' && p > out);

        if (!fine)
            *p = '_';
    }
}

int recorder_name(char out[RECORDER_NAME], const char *instance, int64_t wall_ns,
                  unsigned number)
{
    time_t seconds = (time_t)((wall_ns > 0 ? wall_ns : 0) / NS_PER_S);
    char stamp[32];
    struct tm tm;

    if (gmtime_r(&seconds, &tm) == NULL ||
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm) == 0)
        return -EOVERFLOW;
    snprintf(out, RECORDER_NAME, "%s-%s-%04u.mcap", instance, stamp, number);
    return 0;
}

void recorder_name_fault(char out[RECORDER_NAME], const char *name)
{
    snprintf(out, RECORDER_NAME, "%.*s-fault.mcap", (int)(strlen(name) - strlen(".mcap")),
             name);
}

// d stands for a digit.
static const char *skip_form(const char *s, const char *form)
{
    for (; *form != 0; form++, s++)
        if (*form == 'd' ? *s < '0' || *s > '9' : *s != *form)
            return NULL;
    return s;
}

enum recorder_name_kind recorder_name_kind(const char *name, const char *instance)
{
    size_t n = strlen(instance);
    const char *s;

    if (strncmp(name, instance, n) != 0)
        return NAME_OTHER;
    s = skip_form(name + n, "-ddddddddTddddddZ-dddd");
    if (s == NULL)
        return NAME_OTHER;
    s += strspn(s, "0123456789");
    if (strcmp(s, ".mcap") == 0)
        return NAME_WHOLE;
    if (strcmp(s, "-fault.mcap") == 0)
        return NAME_FAULT;
    if (strcmp(s, ".mcap" RECORDER_PART) == 0 ||
        strcmp(s, "-fault.mcap" RECORDER_PART) == 0)
        return NAME_PART;
    return NAME_OTHER;
}
