// doctor_process: what the kernel grants to this process: class, limits, niceness.
#include <linux/capability.h>
#include <sched.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/doctor_impl.h"

// mlockall counts what is mapped, touched or not: a full-size policy takes 250 MiB, and OpenBLAS,
// where it computes, 128 MiB per thread that multiplies.
#define LOCK_MIB 1024

static bool capable(const struct doctor *d, int capability)
{
    return d->m->capabilities >> capability & 1;
}

// ---- limits.conf ----------------------------------------------------------------------------

// Does a line that is not a comment name the item? "@robot - rtprio 80"
static bool has_item(const char *text, const char *item)
{
    size_t n = strlen(item);

    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        const char *hit = line;

        while (line[0] != '#' && (hit = strstr(hit, item)) != NULL &&
               hit < line + length) {
            if (hit > line && strchr(" \t", hit[-1]) && strchr(" \t", hit[n]))
                return true;
            hit += n;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

static bool in_directory(const struct doctor *d, const char *item)
{
    char path[CONFIG_PATH * 2], text[DOCTOR_FILE];
    struct dirent *e;
    bool found = false;
    DIR *dir;

    snprintf(path, sizeof path, "%s/etc/security/limits.d", d->m->root);
    dir = opendir(path);
    while (dir && !found && (e = readdir(dir)) != NULL)
        if (e->d_name[0] != '.')
            found = doctor_read(d, text, "/etc/security/limits.d/%s", e->d_name) > 0 &&
                    has_item(text, item);
    if (dir)
        closedir(dir);
    return found;
}

// The limits of a login: what is there already is not told to be written again.
static void mend_limit(const struct doctor *d, struct doctor_finding *f, const char *item,
                       const char *value, const char *directive)
{
    char text[DOCTOR_FILE];

    if (d->daemon) {
        doctor_mend(f, "sudo systemctl edit actd@%s  # [Service], then %s",
                    d->cfg ? d->cfg->instance : "NAME", directive);
        return;
    }
    if ((doctor_read(d, text, "/etc/security/limits.conf") > 0 && has_item(text, item)) ||
        in_directory(d, item)) {
        doctor_mend(
            f,
            "/etc/security has a line for %s: log out and in again; where that "
            "changes nothing it is for another user or lower: make it \"- %s %s\"",
            item, item, value);
        return;
    }
    doctor_mend(
        f,
        "echo \"$USER - %s %s\" | sudo tee -a /etc/security/limits.d/actd.conf  # "
        "then log out and in again",
        item, value);
}

// ---- findings -------------------------------------------------------------------------------

static const char *class_granted(const struct doctor *d)
{
    return d->daemon ? d->self->scheduling : d->m->granted;
}

static bool may_ask(const struct doctor *d)
{
    return capable(d, CAP_SYS_NICE) || d->m->rtprio.rlim_cur >= (rlim_t)d->m->priority;
}

static void mend_class(const struct doctor *d, struct doctor_finding *f)
{
    char value[16];

    snprintf(value, sizeof value, "%d", d->m->priority > 80 ? d->m->priority : 80);
    if (may_ask(d)) // allowed, and refused all the same
        doctor_mend(
            f, "the limit suffices: the cgroup or container forbids it; for cgroup v1 "
               "give its cpu.rt_runtime_us a share, for docker run with "
               "--cap-add=sys_nice --ulimit rtprio=80");
    else
        mend_limit(d, f, "rtprio", value, "LimitRTPRIO=80");
}

static void scheduling(struct doctor *d)
{
    const char *got = class_granted(d);
    const char *whose = d->daemon ? "the loop's thread has" : "a loop's thread would get";
    struct doctor_finding *f;

    if (!got[0] || strcmp(got, "unknown") == 0) {
        doctor_unknown(d, "scheduling",
                       "no thread could be made to see which scheduling "
                       "class it gets");
        return;
    }
    if (strncmp(got, "SCHED_FIFO", strlen("SCHED_FIFO")) == 0) {
        doctor_say(d, "scheduling", DOCTOR_GOOD, "%s %s", whose, got);
        return;
    }
    f = doctor_say(d, "scheduling", DOCTOR_HURTS,
                   "%s %s: any program on this PC can make a tick late", whose, got);
    mend_class(d, f);
}

static void rtprio(struct doctor *d)
{
    const struct rlimit *r = &d->m->rtprio;
    struct doctor_finding *f;
    char value[16];

    if (capable(d, CAP_SYS_NICE)) {
        doctor_say(d, "rtprio", DOCTOR_GOOD,
                   "has CAP_SYS_NICE: the rtprio limit (%llu) does not bind",
                   (unsigned long long)r->rlim_cur);
        return;
    }
    if (r->rlim_cur >= (rlim_t)d->m->priority) {
        doctor_say(d, "rtprio", DOCTOR_GOOD, "the rtprio limit %llu covers priority %d",
                   (unsigned long long)r->rlim_cur, d->m->priority);
        return;
    }
    f = doctor_say(
        d, "rtprio", DOCTOR_HURTS,
        "the rtprio limit is %llu (hard %llu), and the loop asks for priority %d",
        (unsigned long long)r->rlim_cur, (unsigned long long)r->rlim_max, d->m->priority);
    snprintf(value, sizeof value, "%d", d->m->priority > 80 ? d->m->priority : 80);
    mend_limit(d, f, "rtprio", value, "LimitRTPRIO=80");
}

static void memlock(struct doctor *d)
{
    const rlim_t limit = d->m->memlock.rlim_cur;
    const unsigned long long mib = (unsigned long long)limit / (1024 * 1024);
    struct doctor_finding *f;

    if (d->daemon && d->self->memory_locked)
        doctor_say(d, "memlock", DOCTOR_GOOD, "the daemon's memory is locked");
    else if (!d->daemon && (capable(d, CAP_IPC_LOCK) || limit == RLIM_INFINITY))
        doctor_say(d, "memlock", DOCTOR_GOOD, "memory may be locked without limit");
    else if (!d->daemon && mib >= LOCK_MIB)
        doctor_say(d, "memlock", DOCTOR_GOOD, "%llu MiB of memory may be locked", mib);
    else if (d->daemon && d->cfg && !d->cfg->control.lock_memory) {
        f = doctor_say(
            d, "memlock", DOCTOR_HURTS,
            "memory is not locked, since control.lock_memory is false: a page that "
            "the kernel took away makes a tick late");
        doctor_mend(f, "set control.lock_memory: true in %s", d->cfg->file);
    } else {
        f = doctor_say(
            d, "memlock", DOCTOR_HURTS,
            "%s: the limit is %llu MiB, and a full-size policy wants %d MiB; a page "
            "that the kernel took away makes a tick late",
            d->daemon ? "memory is not locked" : "memory can not be locked", mib,
            LOCK_MIB);
        mend_limit(d, f, "memlock", "unlimited", "LimitMEMLOCK=infinity");
    }
}

static void niceness(struct doctor *d)
{
    struct doctor_finding *f;

    if (d->m->policy < 0) {
        doctor_unknown(d, "niceness", "sched_getattr is not allowed here");
        return;
    }
    if (d->m->policy == SCHED_IDLE || d->m->policy == SCHED_BATCH) {
        f = doctor_say(
            d, "niceness", DOCTOR_HURTS,
            "started as SCHED_%s: what is not real-time gives way to everything",
            d->m->policy == SCHED_IDLE ? "IDLE" : "BATCH");
        doctor_mend(f, "start it without chrt, or with chrt --other 0");
    } else if (d->m->nice > 0) {
        f = doctor_say(d, "niceness", DOCTOR_HURTS,
                       "started with nice %d: inference gives way to other programs",
                       d->m->nice);
        doctor_mend(f, "start it without nice, or sudo renice -n 0 -p PID");
    } else
        doctor_say(d, "niceness", DOCTOR_GOOD, "nice %d", d->m->nice);
}

void doctor_process(struct doctor *d)
{
    scheduling(d);
    rtprio(d);
    memlock(d);
    niceness(d);
}
