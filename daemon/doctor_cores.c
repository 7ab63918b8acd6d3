// doctor_cores: the processor: its frequency, and what else runs on the loop's core.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/doctor_impl.h"

#define CPU  "/sys/devices/system/cpu"
#define MOST 1024 // cores looked at

// /sys shows no processors at all: not "there are none", but "hidden".
static bool hidden(const struct doctor *d)
{
    return !doctor_is_there(d, CPU "/cpu0");
}

// Cores whose governor is another than performance; the first of them and its governor.
static int slow_cores(const struct doctor *d, int *with, int *first, char *governor)
{
    char text[DOCTOR_FILE];
    int slow = 0;

    *with = 0;
    for (int cpu = 0; cpu < MOST; cpu++) {
        if (doctor_read(d, text, CPU "/cpu%d/cpufreq/scaling_governor", cpu) <= 0) {
            if (cpu > 0 && doctor_read(d, text, CPU "/cpu%d/uevent", cpu) < 0)
                break; // past the last
            continue;
        }
        ++*with;
        if (strcmp(text, "performance") == 0)
            continue;
        if (slow++ == 0) {
            *first = cpu;
            snprintf(governor, 32, "%.31s", text);
        }
    }
    return slow;
}

static void governor(struct doctor *d)
{
    int with, first = 0, slow;
    char name[32];
    struct doctor_finding *f;

    if (hidden(d)) {
        doctor_unknown(d, "governor", "/sys does not show the processors");
        return;
    }
    slow = slow_cores(d, &with, &first, name);
    if (with == 0) {
        doctor_say(d, "governor", d->m->hypervisor ? DOCTOR_NOTE : DOCTOR_GOOD,
                   "no frequency scaling here%s",
                   d->m->hypervisor ? "; the host's is not seen from a virtual machine"
                                    : "");
        return;
    }
    if (slow == 0) {
        doctor_say(d, "governor", DOCTOR_GOOD, "performance on all %d cores", with);
        return;
    }
    f = doctor_say(
        d, "governor", DOCTOR_HURTS,
        "'%s' on core %d (%d of %d not 'performance'): the clock falls between "
        "inferences and rises too late",
        name, first, slow, with);
    doctor_mend(f,
                "sudo cpupower frequency-set -g performance  # package linux-cpupower");
}

static void frequency(struct doctor *d)
{
    long long most, allowed;
    struct doctor_finding *f;

    if (!doctor_number(d, CPU "/cpu0/cpufreq/cpuinfo_max_freq", &most) ||
        !doctor_number(d, CPU "/cpu0/cpufreq/scaling_max_freq", &allowed) || most <= 0)
        return; // governor has told why
    if (allowed >= most) {
        doctor_say(d, "frequency", DOCTOR_GOOD, "up to %.2f GHz", (double)most / 1e6);
        return;
    }
    f = doctor_say(d, "frequency", DOCTOR_HURTS, "held at %.2f of %.2f GHz",
                   (double)allowed / 1e6, (double)most / 1e6);
    doctor_mend(f, "sudo cpupower frequency-set -u %lldkHz", most);
}

// A core list from /sys: "" and "(null)" are no cores. False = not to be had.
static bool core_list(const struct doctor *d, const char *path, char *list)
{
    if (doctor_read(d, list, "%s", path) < 0)
        return false;
    if (strcmp(list, "(null)") == 0)
        list[0] = '\0';
    return true;
}

static void mend_isolation(const struct doctor *d, struct doctor_finding *f)
{
    int cpu = d->loop_cpu >= 0 ? d->loop_cpu : d->m->last_core;

    doctor_mend(f,
                "add isolcpus=domain,managed_irq,%d nohz_full=%d rcu_nocbs=%d to "
                "GRUB_CMDLINE_LINUX in /etc/default/grub, sudo update-grub, reboot; set "
                "control.cpu: %d",
                cpu, cpu, cpu, cpu);
}

static void isolated(struct doctor *d)
{
    char list[DOCTOR_FILE];
    struct doctor_finding *f;

    if (!core_list(d, CPU "/isolated", list))
        doctor_unknown(d, "isolated", "/sys does not show which cores are isolated");
    else if (d->m->cores < 2 && !list[0])
        doctor_say(d, "isolated", DOCTOR_HURTS,
                   "this process may use one core only: the loop and inference share it");
    else if (!list[0]) {
        f = doctor_say(
            d, "isolated", DOCTOR_NOTE,
            "no core is kept for the loop: interrupts and other programs share it");
        mend_isolation(d, f);
    } else if (d->loop_cpu >= 0 && doctor_listed(list, d->loop_cpu))
        doctor_say(d, "isolated", DOCTOR_GOOD,
                   "core %d is the loop's alone (isolated: %.60s)", d->loop_cpu, list);
    else {
        f = doctor_say(d, "isolated", DOCTOR_HURTS,
                       "cores %.60s are isolated, and the loop is not on one of them",
                       list);
        doctor_mend(f, "set control.cpu to one of %.60s", list);
    }
}

// Worth it only on a core that the loop has to itself: else other programs interrupt it anyhow.
static void no_nohz(struct doctor *d, bool built_in)
{
    int cpu = d->loop_cpu >= 0 ? d->loop_cpu : d->m->last_core;
    struct doctor_finding *f;

    f = doctor_say(
        d, "nohz_full", DOCTOR_NOTE,
        "the kernel's own tick interrupts every core, some microseconds each%s",
        !built_in ? "; this kernel is built without nohz_full: nothing to switch on"
        : cpu < 0 ? "; nohz_full would need a second core"
                  : "");
    if (built_in && cpu >= 0)
        doctor_mend(
            f,
            "add nohz_full=%d rcu_nocbs=%d (with isolcpus) to GRUB_CMDLINE_LINUX in "
            "/etc/default/grub, sudo update-grub, reboot; set control.cpu: %d",
            cpu, cpu, cpu);
}

static void nohz(struct doctor *d)
{
    char list[DOCTOR_FILE];
    struct doctor_finding *f;
    bool built_in;

    if (hidden(d)) {
        doctor_unknown(d, "nohz_full", "/sys does not show the processors");
        return;
    }
    built_in = core_list(d, CPU "/nohz_full", list);
    if (!built_in || !list[0])
        no_nohz(d, built_in);
    else if (d->loop_cpu >= 0 && doctor_listed(list, d->loop_cpu))
        doctor_say(d, "nohz_full", DOCTOR_GOOD, "core %d runs without the kernel's tick",
                   d->loop_cpu);
    else {
        f = doctor_say(d, "nohz_full", DOCTOR_NOTE,
                       "cores %.60s run without the kernel's tick, the loop's does not",
                       list);
        doctor_mend(f, "set control.cpu to one of %.60s", list);
    }
}

static void smt(struct doctor *d)
{
    long long active;
    struct doctor_finding *f;

    if (!doctor_number(d, CPU "/smt/active", &active))
        doctor_unknown(d, "SMT", "/sys does not show whether cores are shared");
    else if (!active)
        doctor_say(d, "SMT", DOCTOR_GOOD, "no two hardware threads share a core");
    else {
        f = doctor_say(
            d, "SMT", DOCTOR_NOTE,
            "two hardware threads share a core: whatever runs beside the loop slows "
            "its ticks");
        if (d->m->hypervisor)
            doctor_mend(f, "switch it off on the host");
        else
            doctor_mend(f, "echo off | sudo tee " CPU "/smt/control");
    }
}

static void dma_latency(struct doctor *d)
{
    char path[CONFIG_PATH * 2];
    struct doctor_finding *f;

    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", d->m->root);
    if (access(path, W_OK) == 0) {
        doctor_say(d, "cpu_dma_latency", DOCTOR_GOOD,
                   "the daemon may keep cores out of deep sleep while it runs");
        return;
    }
    if (errno == ENOENT) {
        doctor_unknown(d, "cpu_dma_latency",
                       "/dev/cpu_dma_latency is not there, or hidden by the service's "
                       "PrivateDevices: cores may sleep deeply, and wake late");
        return;
    }
    f = doctor_say(
        d, "cpu_dma_latency", DOCTOR_NOTE,
        "/dev/cpu_dma_latency is not ours to open: cores sleep deeply, and wake "
        "20 us to 200 us late");
    doctor_mend(
        f, "echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"actd\", MODE=\"0660\"' | sudo tee "
           "/etc/udev/rules.d/60-actd.rules && sudo udevadm trigger --name-match="
           "cpu_dma_latency");
}

void doctor_cores(struct doctor *d)
{
    governor(d);
    frequency(d);
    isolated(d);
    nohz(d);
    smt(d);
    dma_latency(d);
    doctor_load(d);
}
