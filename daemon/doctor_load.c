// doctor_load: what else wants to run. The load average counts the programs that run or wait to,
// this one too, and those that wait for a disk: above the number of cores somebody always waits.
#include <stdlib.h>

#include "daemon/doctor_impl.h"

#define ONLINE "/sys/devices/system/cpu/online"

// Cores of the machine; those that this process may use where that is hidden.
static int all_cores(const struct doctor *d)
{
    char list[DOCTOR_FILE];
    const char *at = list;
    int n = 0;

    if (doctor_read(d, list, ONLINE) <= 0)
        return d->m->cores;
    while (*at >= '0' && *at <= '9') {
        char *end;
        long first = strtol(at, &end, 10), last = first;

        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last < first || last > 65535)
            return d->m->cores;
        n += (int)(last - first) + 1;
        at = *end == ',' ? end + 1 : end;
    }
    return n > 0 ? n : d->m->cores;
}

// The loop's core takes no part in the others' load.
static bool kept_for_the_loop(const struct doctor *d)
{
    char list[DOCTOR_FILE];

    return d->loop_cpu >= 0 &&
           doctor_read(d, list, "/sys/devices/system/cpu/isolated") > 0 &&
           doctor_listed(list, d->loop_cpu);
}

void doctor_load(struct doctor *d)
{
    char text[DOCTOR_FILE], *end = text;
    int cores = all_cores(d);
    double load = -1;
    struct doctor_finding *f;

    if (doctor_read(d, text, "/proc/loadavg") > 0)
        load = strtod(text, &end); // of the last minute; two longer ones follow
    if (end == text || *end != ' ' || !(load >= 0)) {
        doctor_unknown(d, "load", "/proc/loadavg is hidden from this process");
        return;
    }
    if (load <= cores) {
        doctor_say(d, "load", DOCTOR_GOOD, "%.1f programs want %d core%s", load, cores,
                   cores == 1 ? "" : "s");
        return;
    }
    f = doctor_say(d, "load", kept_for_the_loop(d) ? DOCTOR_NOTE : DOCTOR_HURTS,
                   "over the last minute %.1f programs want %d core%s: %s", load, cores,
                   cores == 1 ? "" : "s",
                   kept_for_the_loop(d)
                       ? "inference waits for them, the loop's core is its own"
                       : "inference waits for them, and so may the loop");
    doctor_mend(
        f, kept_for_the_loop(d)
               ? "end them (top shows which)"
               : "end them (top shows which), or reserve cores (isolcpus, control.cpu)");
}
