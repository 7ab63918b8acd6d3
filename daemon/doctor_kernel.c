// doctor_kernel: how the kernel was built and tuned.
#include <string.h>

#include "daemon/doctor_impl.h"

#define RT_KERNEL \
    "sudo apt install linux-image-rt-$(dpkg --print-architecture) && sudo reboot"

// "preempt=full" among the kernel's parameters; "" = not given. False = hidden.
static bool preempt_parameter(const struct doctor *d, char *value, size_t size)
{
    char line[DOCTOR_FILE + 1] = " ";
    const char *at;

    value[0] = '\0';
    if (doctor_read(d, line + 1, "/proc/cmdline") < 0)
        return false;
    for (const char *next = line; (next = strstr(next, " preempt=")) != NULL;) {
        next += strlen(" preempt="); // the last one counts
        at = next;
        snprintf(value, size, "%.*s", (int)strcspn(at, " "), at);
    }
    return true;
}

static void dynamic(struct doctor *d)
{
    char mode[16];
    bool seen = preempt_parameter(d, mode, sizeof mode);
    struct doctor_finding *f;

    if (strcmp(mode, "full") == 0)
        doctor_say(
            d, "preemption", DOCTOR_GOOD,
            "preemptible kernel (preempt=full); PREEMPT_RT would bound its worst cases");
    else if (mode[0]) {
        f = doctor_say(
            d, "preemption", DOCTOR_HURTS,
            "the kernel was started with preempt=%s: its own work can hold up the "
            "loop for milliseconds",
            mode);
        doctor_mend(f,
                    "put preempt=full into GRUB_CMDLINE_LINUX in /etc/default/grub, sudo "
                    "update-grub, reboot; or " RT_KERNEL);
    } else if (!seen) {
        doctor_unknown(
            d, "preemption",
            "it is chosen at boot, and the kernel's parameters are hidden from this "
            "process");
    } else {
        f = doctor_say(
            d, "preemption", DOCTOR_NOTE,
            "preemption is chosen at boot, and no preempt= was given: Debian's choice "
            "is voluntary");
        doctor_mend(f, RT_KERNEL "; or start the kernel with preempt=full");
    }
}

static void preemption(struct doctor *d)
{
    long long realtime = 0;
    struct doctor_finding *f;

    if ((doctor_number(d, "/sys/kernel/realtime", &realtime) && realtime == 1) ||
        strstr(d->m->kernel, "PREEMPT_RT") || strstr(d->m->kernel, "PREEMPT RT"))
        doctor_say(d, "preemption", DOCTOR_GOOD, "PREEMPT_RT kernel");
    else if (!d->m->kernel[0])
        doctor_unknown(d, "preemption", "the kernel does not say its version");
    else if (strstr(d->m->kernel, "PREEMPT_DYNAMIC"))
        dynamic(d);
    else if (strstr(d->m->kernel, "PREEMPT"))
        doctor_say(d, "preemption", DOCTOR_GOOD,
                   "preemptible kernel; PREEMPT_RT would bound its worst cases");
    else {
        f = doctor_say(
            d, "preemption", DOCTOR_HURTS,
            "the kernel is not preemptible: its own work can hold up the loop for "
            "milliseconds");
        doctor_mend(f, RT_KERNEL);
    }
}

// Real-time threads get runtime of each period together, then wait. The preset of 95 % is a
// safety net that a loop never meets: it sleeps most of its period.
static void throttling(struct doctor *d)
{
    long long runtime, period;
    struct doctor_finding *f;

    if (!doctor_number(d, "/proc/sys/kernel/sched_rt_runtime_us", &runtime)) {
        doctor_unknown(d, "rt throttling", "/proc/sys is hidden from this process");
        return;
    }
    if (!doctor_number(d, "/proc/sys/kernel/sched_rt_period_us", &period) || period <= 0)
        period = 1000000;
    if (runtime < 0)
        doctor_say(d, "rt throttling", DOCTOR_GOOD, "off");
    else if (runtime * 10 >= period * 9)
        doctor_say(
            d, "rt throttling", DOCTOR_GOOD,
            "at %.0f %% of a core: the loop sleeps most of its time and never meets it",
            100 * (double)runtime / (double)period);
    else {
        f = doctor_say(d, "rt throttling", DOCTOR_HURTS,
                       "real-time threads are stopped after %.0f %% of each %.0f ms",
                       100 * (double)runtime / (double)period, (double)period / 1000);
        doctor_mend(f, "sudo sysctl -w kernel.sched_rt_runtime_us=%lld",
                    period / 20 * 19);
    }
}

static void huge_pages(struct doctor *d)
{
    char text[DOCTOR_FILE];
    struct doctor_finding *f;
    const char *word = "THP";

    if (doctor_read(d, text, "/sys/kernel/mm/transparent_hugepage/enabled") <= 0)
        doctor_unknown(d, word, "/sys does not show transparent huge pages");
    else if (!strstr(text, "[always]"))
        doctor_say(d, word, DOCTOR_GOOD, "transparent huge pages only where asked for");
    else {
        f = doctor_say(
            d, word, DOCTOR_NOTE,
            "transparent huge pages for everybody: the kernel may move memory while a "
            "thread waits for it");
        doctor_mend(
            f, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    }
}

void doctor_kernel(struct doctor *d)
{
    preemption(d);
    throttling(d);
    huge_pages(d);
}
