// doctor_housing: who else decides when this machine runs: a hypervisor, a container, a quota.
#include <stdlib.h>
#include <string.h>

#include "daemon/doctor_impl.h"

// Share of the time since boot in which the hypervisor ran somebody else: the 8th number.
static double stolen(const char *stat)
{
    double number[8] = {0}, all = 0;
    const char *at = stat + strcspn(stat, " ");
    char *end;

    for (int i = 0; i < 8; i++, at = end) {
        number[i] = strtod(at, &end);
        if (end == at)
            return -1;
        all += number[i];
    }
    return all > 0 ? number[7] / all : -1;
}

static void steal(struct doctor *d)
{
    char text[DOCTOR_FILE];
    double share = -1;
    struct doctor_finding *f;

    if (doctor_read(d, text, "/proc/stat") > 0 && strncmp(text, "cpu ", 4) == 0)
        share = stolen(text);
    if (share < 0) {
        doctor_unknown(d, "steal", "/proc/stat is hidden from this process");
        return;
    }
    if (share < 0.001) {
        doctor_say(d, "steal", DOCTOR_GOOD, "no time is taken from this machine%s",
                   d->m->hypervisor ? ", although it is a virtual one" : "");
        return;
    }
    f = doctor_say(
        d, "steal", share < 0.01 ? DOCTOR_NOTE : DOCTOR_HURTS,
        "the hypervisor took %.1f %% of the time since boot: ticks are late by as "
        "much as it takes at once",
        100 * share);
    doctor_mend(
        f, "run actd on a PC of its own, or pin the virtual machine's cores on the host");
}

static void virtual_machine(struct doctor *d)
{
    struct doctor_finding *f;

    if (!d->m->x86)
        doctor_unknown(d, "hypervisor",
                       "only x86-64 tells whether this is a virtual machine");
    else if (!d->m->hypervisor)
        doctor_say(d, "hypervisor", DOCTOR_GOOD, "none: this is the machine itself");
    else {
        f = doctor_say(
            d, "hypervisor", DOCTOR_NOTE,
            "this is a virtual machine: the host's frequency, interrupts and load "
            "are not seen from here");
        doctor_mend(f, "run actd on the machine itself");
    }
}

static void container(struct doctor *d)
{
    static const char *const mark[][2] = {
        {"/.dockerenv", "docker"},
        {"/run/.containerenv", "podman"},
        {"/run/systemd/container", "systemd-nspawn or alike"}};

    for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
        if (doctor_is_there(d, mark[i][0])) {
            doctor_say(
                d, "container", DOCTOR_NOTE,
                "inside a container (%s): limits, cores and devices are what it was "
                "started with",
                mark[i][1]);
            return;
        }
    doctor_say(d, "container", DOCTOR_GOOD, "no mark of a container");
}

// ---- quota ----------------------------------------------------------------------------------

// Cores worth of time that one cgroup may use; 0 = no bound there.
static double quota_of(const struct doctor *d, const char *version2, const char *path)
{
    char text[DOCTOR_FILE], *end;
    double quota, period;

    if (version2) {
        if (doctor_read(d, text, "/sys/fs/cgroup%s/cpu.max", path) <= 0)
            return 0;
        quota = strtod(text, &end); // "max 100000" has none
        period = strtod(end, NULL);
        return end != text && period > 0 ? quota / period : 0;
    }
    if (doctor_read(d, text, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", path) <= 0)
        return 0;
    quota = strtod(text, NULL); // -1 = none
    if (doctor_read(d, text, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", path) <= 0)
        return 0;
    period = strtod(text, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

// The least of a cgroup and those above it. path is cut on the way.
static double least_quota(const struct doctor *d, const char *version2, char *path)
{
    double least = 0;

    for (;;) {
        double q = quota_of(d, version2, strcmp(path, "/") == 0 ? "" : path);
        char *slash = strrchr(path, '/');

        if (q > 0 && (least <= 0 || q < least))
            least = q;
        if (!slash || !path[0])
            return least;
        *slash = '\0';
    }
}

// Path of our cgroup: of version 2 from "0::/a/b", of version 1 from "N:cpu,cpuacct:/a/b" or
// "N:cpu:/a/b". NULL = no such line.
static char *cgroup_path(char *text, const char *controller)
{
    char *saved = NULL;

    for (char *line = strtok_r(text, "\n", &saved); line;
         line = strtok_r(NULL, "\n", &saved)) {
        char *name = strchr(line, ':'), *path = name ? strchr(name + 1, ':') : NULL;
        size_t n = strlen(controller);

        if (!path)
            continue;
        *path = '\0';
        if (strncmp(name + 1, controller, n) == 0 &&
            (name[1 + n] == '\0' || (n > 0 && name[1 + n] == ',')))
            return path + 1;
    }
    return NULL;
}

static void quota(struct doctor *d)
{
    static const char *const controller[] = {"", "cpu"}; // version 2, version 1
    char text[DOCTOR_FILE], *path;
    double least = 0;
    struct doctor_finding *f;

    for (int i = 0; i < 2; i++) {
        if (doctor_read(d, text, "/proc/self/cgroup") <= 0 ||
            !doctor_is_there(d, "/sys/fs/cgroup")) {
            doctor_unknown(d, "cpu quota", "this process does not see its cgroup");
            return;
        }
        path = cgroup_path(text, controller[i]);
        double q = path ? least_quota(d, i == 0 ? "v2" : NULL, path) : 0;
        if (q > 0 && (least <= 0 || q < least))
            least = q;
    }
    if (least <= 0) {
        doctor_say(d, "cpu quota", DOCTOR_GOOD, "no bound on processor time");
        return;
    }
    f = doctor_say(
        d, "cpu quota", DOCTOR_HURTS,
        "this cgroup may use %.2f cores' time: beyond it every thread stands still "
        "until the next period, the loop too",
        least);
    doctor_mend(f,
                "sudo systemctl set-property actd@%s.service CPUQuota=  # empty; docker: "
                "without --cpus",
                d->cfg ? d->cfg->instance : "NAME");
}

void doctor_housing(struct doctor *d)
{
    virtual_machine(d);
    steal(d);
    container(d);
    quota(d);
}
