#include "daemon/blas_env.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct setting {
    const char *name, *value;
};

static const char *core_type(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL; // let OpenBLAS look
}

static bool is_blas(const char *entry)
{
    return strncmp(entry, "OPENBLAS_", 9) == 0 || strncmp(entry, "GOTO_", 5) == 0 ||
           strncmp(entry, "OMP_", 4) == 0;
}

static bool is_setting(const char *entry, const struct setting *s)
{
    size_t n = strlen(s->name);
    return s->value && strncmp(entry, s->name, n) == 0 && entry[n] == '=' &&
           strcmp(entry + n + 1, s->value) == 0;
}

// Removes every foreign variable; true when something had to go.
static bool clear(const struct setting *want, int n)
{
    bool changed = false;
    for (char **e = environ; *e;) {
        bool keep = !is_blas(*e);
        for (int i = 0; i < n; i++)
            keep = keep || is_setting(*e, &want[i]);
        if (keep) {
            e++;
            continue;
        }
        char *name = strndup(*e, strcspn(*e, "="));
        if (!name || unsetenv(name)) // moves the entries behind it up
            e++;
        free(name);
        changed = true;
    }
    return changed;
}

int blas_env_fix(char **argv)
{
    const struct setting want[] = {
        {"OPENBLAS_CORETYPE", core_type()},
        {"OPENBLAS_NUM_THREADS", "1"},
    };
    bool changed = clear(want, 2);
    for (int i = 0; i < 2; i++) {
        const char *now = getenv(want[i].name);
        if (!want[i].value || (now && strcmp(now, want[i].value) == 0))
            continue;
        if (setenv(want[i].name, want[i].value, 1))
            return -errno;
        changed = true;
    }
    if (!changed)
        return 0;
    execv("/proc/self/exe", argv);
    return -errno;
}
