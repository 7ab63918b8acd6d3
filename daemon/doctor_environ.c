// doctor_environ: what changes the arithmetic: instructions, kernels, variables of the
// environment. The daemon clears OpenBLAS's variables before it loads it (blas_env.c); a program
// of somebody's own that links it, or an LD_PRELOAD, does not.
#include <string.h>

#include "daemon/doctor_impl.h"

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

// The two that the daemon sets itself; and what is set to nothing does nothing.
static bool is_harmless(const struct doctor *d, const char *entry)
{
    const char *value = strchr(entry, '=');

    return !value || !value[1] ||
           (d->self && (starts(entry, "OPENBLAS_NUM_THREADS=") ||
                        starts(entry, "OPENBLAS_CORETYPE=")));
}

// Adds the name before the '=' to a list.
static void add_name(char *list, size_t size, const char *entry)
{
    size_t n = strlen(list);

    snprintf(list + n, size - n, "%s%.*s", n ? " " : "", (int)strcspn(entry, "="), entry);
}

// Names of the variables that begin with one of the prefixes.
static int collect(const struct doctor *d, const char *const *prefix, int n, char *list,
                   size_t size)
{
    int found = 0;

    list[0] = '\0';
    for (char *const *e = d->m->environ; e && *e; e++)
        for (int i = 0; i < n; i++)
            if (starts(*e, prefix[i]) && !is_harmless(d, *e)) {
                add_name(list, size, *e);
                found++;
                break;
            }
    return found;
}

static void mend_environment(const struct doctor *d, struct doctor_finding *f,
                             const char *names)
{
    if (d->daemon)
        doctor_mend(f,
                    "sudo systemctl edit actd@%s  # [Service], then UnsetEnvironment=%s",
                    d->cfg ? d->cfg->instance : "NAME", names);
    else
        doctor_mend(f, "unset %s", names);
}

static void environment(struct doctor *d)
{
    static const char *const loader[] = {
        "LD_PRELOAD=", "LD_LIBRARY_PATH=", "LD_AUDIT=", "GLIBC_TUNABLES=", "MALLOC_"};
    static const char *const blas[] = {"OPENBLAS_", "GOTO_", "OMP_"};
    char names[200];
    struct doctor_finding *f;

    if (collect(d, loader, 5, names, sizeof names)) {
        f = doctor_say(d, "environment", DOCTOR_HURTS,
                       "%s is set: other code, or another allocator, inside the daemon",
                       names);
        mend_environment(d, f, names);
        return;
    }
    if (collect(d, blas, 3, names, sizeof names)) {
        f = doctor_say(
            d, "environment", DOCTOR_NOTE,
            "%s is set: actd clears it before OpenBLAS is loaded, other programs "
            "do not",
            names);
        mend_environment(d, f, names);
        return;
    }
    doctor_say(d, "environment", DOCTOR_GOOD,
               "no variable that changes OpenBLAS or the loader");
}

// What the daemon itself chose; others are for replays.
static void kernels(struct doctor *d)
{
    const char *name = d->self ? d->self->kernels : NULL;

    if (!name || !name[0])
        return; // the one who looks does not compute
    if (strcmp(name, "openblas") == 0)
        doctor_say(
            d, "kernels", DOCTOR_NOTE,
            "matrix products are OpenBLAS's, with its %s kernels: results differ in the "
            "last bits from other kernels'",
            d->self->blas_core ? d->self->blas_core : "own");
    else if (strcmp(name, "generic") == 0)
        doctor_say(
            d, "kernels", DOCTOR_NOTE,
            "computes in plain C: results differ in the last bits from other kernels'");
    else
        doctor_say(d, "kernels", DOCTOR_GOOD, "computes with its %s kernels", name);
}

static void instructions(struct doctor *d)
{
    struct doctor_finding *f;

    if (!d->m->x86)
        doctor_say(d, "instructions", DOCTOR_NOTE, "not an x86-64");
    else if (!d->m->avx2) {
        f = doctor_say(d, "instructions", DOCTOR_HURTS,
                       "no AVX2 with FMA: an inference takes several times as long");
        doctor_mend(f, d->m->hypervisor
                           ? "give the virtual machine the host's processor (-cpu host)"
                           : "use a PC with AVX2 (Intel from 2013, AMD from 2015 on)");
    } else
        doctor_say(d, "instructions", DOCTOR_GOOD, "AVX2%s",
                   d->m->avx512 ? ", AVX-512" : "");
}

void doctor_environ(struct doctor *d)
{
    environment(d);
    kernels(d);
    instructions(d);
}
