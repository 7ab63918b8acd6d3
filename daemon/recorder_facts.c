// What every file says of the run it is a part of: the metadata record "actd" (keys: logbook.h).
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "daemon/keyframe.h"
#include "daemon/recorder_parts.h"
#include "policy/digest.h"

#if defined(__clang__)
#define COMPILER "clang " __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif
#ifndef ACTD_FLAGS
#define ACTD_FLAGS "unknown"
#endif

// ---- this machine --------------------------------------------------------------------------------

static void cpu_model(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");

    snprintf(out, size, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');

        if (colon == NULL || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (f != NULL)
        fclose(f);
}

// How this thread rounds, and whether it flushes denormals: threads inherit it from their maker.
static unsigned mxcsr(void)
{
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu; // without the sticky flags of what happened so far
#else
    return 0;
#endif
}

// ---- pairs -------------------------------------------------------------------------------------

static int add(struct recorder_own *o, const char *key, const char *value)
{
    if (o->n == RECORDER_FACTS)
        return -E2BIG;
    o->text[o->n] = strdup(value != NULL ? value : "");
    if (o->text[o->n] == NULL)
        return -ENOMEM;
    o->pair[o->n] = (struct mcap_pair){key, o->text[o->n]};
    o->n++;
    return 0;
}

static int add_names(struct recorder_own *o, const char *key, const char *const *name,
                     int n)
{
    size_t size = 1;
    char *text;
    int rc;

    for (int i = 0; i < n; i++)
        size += strlen(name[i]) + 1;
    text = calloc(1, size);
    if (text == NULL)
        return -ENOMEM;
    for (int i = 0, at = 0; i < n; i++)
        at += snprintf(text + at, size - (size_t)at, "%s%s", i > 0 ? "\n" : "", name[i]);
    rc = add(o, key, text);
    free(text);
    return rc;
}

static int add_number(struct recorder_own *o, const char *key, int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, value);
    return add(o, key, text);
}

static int add_run(struct recorder_own *o)
{
    unsigned char id[16] = {0};
    char text[33];

    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id) {
        ns_t now[2] = {clock_wall_ns(), clock_now_ns()}; // as good as unique

        memcpy(id, now, sizeof id);
    }
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return add(o, "run_id", text);
}

static int add_machine(struct recorder_own *o, const struct recorder_facts *f)
{
    char cpu[128], exe[POLICY_DIGEST_HEX], text[32];
    int rc;

    if (f->cpu == NULL || f->cpu[0] == 0)
        cpu_model(cpu, sizeof cpu);
    else
        snprintf(cpu, sizeof cpu, "%s", f->cpu);
    if (f->exe_sha256 == NULL || f->exe_sha256[0] == 0)
        digest_program(exe);
    else
        snprintf(exe, sizeof exe, "%s", f->exe_sha256);
    rc = add(o, "exe_sha256", exe);
    rc = rc ? rc : add(o, "cpu", cpu);
    rc = rc ? rc : add(o, "kernels", f->kernels);
    rc = rc ? rc : add(o, "blas_core", f->blas_core);
    rc = rc ? rc : add(o, "precision", f->precision);
    snprintf(text, sizeof text, "0x%04x", mxcsr());
    rc = rc ? rc : add(o, "mxcsr", text);
    snprintf(text, sizeof text, "%016" PRIx64, keyframe_build());
    return rc ? rc : add(o, "keyframe_build", text);
}

static int add_robot(struct recorder_own *o, const struct recorder_facts *f)
{
    const char *config = f->config_text != NULL ? f->config_text : "";
    char text[32], sum[POLICY_DIGEST_HEX];
    struct policy_error err;
    int rc = add(o, "config_file", f->config_file);

    rc = rc ? rc : add(o, "config", config);
    rc = rc ? rc : digest_of(config, strlen(config), sum, &err);
    rc = rc ? rc : add(o, "config_sha256", sum);
    rc = rc ? rc : add(o, "policy_sha256", f->policy_sha256);
    rc = rc ? rc : add(o, "weights_sha256", f->weights_sha256);
    rc = rc ? rc : add_names(o, "joints", f->joint, f->joints);
    rc = rc ? rc : add_names(o, "cameras", f->camera, f->cameras);
    snprintf(text, sizeof text, "%.17g", f->control_hz);
    rc = rc ? rc : add(o, "control_hz", text);
    rc = rc ? rc : add_number(o, "rows", f->rows);
    snprintf(text, sizeof text, "%.17g", f->policy_hz);
    rc = rc ? rc : add(o, "policy_hz", text);
    rc = rc ? rc : add_number(o, "action_steps", f->action_steps);
    snprintf(text, sizeof text, "%.17g", f->ensemble_coeff);
    rc = rc ? rc : add(o, "ensemble_coeff", text);
    return rc ? rc : add(o, "sizes", f->sizes);
}

int recorder_own_init(struct recorder_own *o, const struct recorder_facts *f,
                      int64_t base_ns)
{
    const char *version = f->version != NULL ? f->version : "unknown";
    char name[128];
    int rc = add(o, "version", version);

    rc = rc ? rc : add(o, "compiler", COMPILER);
    rc = rc ? rc : add(o, "flags", ACTD_FLAGS);
    rc = rc ? rc : add(o, "instance", f->instance);
    rc = rc ? rc : add_run(o);
    rc = rc ? rc : add_number(o, "base_ns", base_ns);
    rc = rc ? rc : add_machine(o, f);
    rc = rc ? rc : add_robot(o, f);
    if (rc != 0)
        return rc;
    recorder_instance_name(name, sizeof name, f->instance);
    o->instance = strdup(name);
    if (asprintf(&o->library, "actd %s", version) < 0)
        o->library = NULL;
    return o->instance != NULL && o->library != NULL ? 0 : -ENOMEM;
}

void recorder_own_free(struct recorder_own *o)
{
    for (int i = 0; i < o->n; i++)
        free(o->text[i]);
    free(o->instance);
    free(o->library);
}
