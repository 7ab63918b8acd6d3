// doctor: see the header. The list of findings, and what is done with it.
#include "daemon/doctor.h"

#include <stdarg.h>
#include <string.h>

#include "daemon/doctor_impl.h"
#include "daemon/table.h"

#define PRIORITY 50 // control.priority's preset

static void write_line(char *out, size_t size, const char *format, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void write_line(char *out, size_t size, const char *format, va_list ap)
{
    vsnprintf(out, size, format, ap);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?'; // names of the environment may hold anything
}

// One past the last goes to a place that nobody reads.
static struct doctor_finding *next(struct doctor *d, const char *what,
                                   enum doctor_severity severity)
{
    static _Thread_local struct doctor_finding lost;
    struct doctor_finding *f = d->n < d->max ? &d->out[d->n++] : &lost;

    memset(f, 0, sizeof *f);
    snprintf(f->what, sizeof f->what, "%s", what);
    f->severity = severity;
    return f;
}

struct doctor_finding *doctor_say(struct doctor *d, const char *what,
                                  enum doctor_severity severity, const char *format, ...)
{
    struct doctor_finding *f = next(d, what, severity);
    va_list ap;

    va_start(ap, format);
    write_line(f->text, sizeof f->text, format, ap);
    va_end(ap);
    return f;
}

void doctor_mend(struct doctor_finding *f, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    write_line(f->remedy, sizeof f->remedy, format, ap);
    va_end(ap);
}

void doctor_unknown(struct doctor *d, const char *what, const char *format, ...)
{
    struct doctor_finding *f = next(d, what, DOCTOR_NOTE);
    size_t n = strlen(DOCTOR_UNKNOWN);
    va_list ap;

    memcpy(f->text, DOCTOR_UNKNOWN, n);
    va_start(ap, format);
    write_line(f->text + n, sizeof f->text - n, format, ap);
    va_end(ap);
}

// The loop's core: the daemon's own word, then the configuration's, then the preset.
static int loop_cpu(const struct doctor *d)
{
    if (d->daemon)
        return d->self->loop_cpu;
    if (d->cfg && d->cfg->control.cpu >= 0)
        return d->cfg->control.cpu;
    return d->m->last_core;
}

int doctor_judge(const struct doctor_machine *m, const struct config *cfg,
                 const struct doctor_self *self, struct doctor_finding *out, int max)
{
    struct doctor d = {.m = m, .cfg = cfg, .self = self, .out = out, .max = max};

    d.daemon = self && self->scheduling;
    d.loop_cpu = loop_cpu(&d);
    doctor_process(&d);
    doctor_environ(&d);
    doctor_cores(&d);
    doctor_kernel(&d);
    doctor_housing(&d);
    doctor_keeping(&d);
    return d.n;
}

int doctor_look(const struct config *cfg, const struct doctor_self *self,
                struct doctor_finding *out, int max)
{
    int priority = cfg && cfg->control.priority > 0 ? cfg->control.priority : PRIORITY;
    struct doctor_machine m;

    doctor_ask(&m, priority, !self || !self->scheduling);
    return doctor_judge(&m, cfg, self, out, max);
}

static const struct doctor_finding *find(const struct doctor_finding *f, int n,
                                         const char *what)
{
    for (int i = 0; i < n; i++)
        if (strcmp(f[i].what, what) == 0)
            return &f[i];
    return NULL;
}

static bool is_unknown(const struct doctor_finding *f)
{
    return strncmp(f->text, DOCTOR_UNKNOWN, strlen(DOCTOR_UNKNOWN)) == 0;
}

// Of the process that asked: another one's would say nothing of the daemon.
static bool is_own(const char *what)
{
    static const char *const own[] = {"scheduling", "rtprio",      "memlock",
                                      "niceness",   "environment", "kernels",
                                      "cpu quota",  "container",   "cpu_dma_latency"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], what) == 0)
            return true;
    return false;
}

int doctor_merge(const struct doctor_finding *daemon, int n_daemon,
                 const struct doctor_finding *ours, int n_ours,
                 struct doctor_finding *out, int max)
{
    int n = 0;

    for (int i = 0; i < n_daemon && n < max; i++) {
        const struct doctor_finding *other = find(ours, n_ours, daemon[i].what);

        if (other && is_unknown(&daemon[i]) && !is_own(daemon[i].what))
            out[n++] = *other;
        else
            out[n++] = daemon[i];
    }
    for (int i = 0; i < n_ours && n < max; i++)
        if (!find(daemon, n_daemon, ours[i].what))
            out[n++] = ours[i];
    return n;
}

const char *doctor_word(enum doctor_severity severity)
{
    static const char *const word[] = {"good", "note", "hurts"};

    return severity >= DOCTOR_GOOD && severity <= DOCTOR_HURTS ? word[severity] : "?";
}

enum doctor_severity doctor_print(const struct doctor_finding *f, int n, FILE *out)
{
    int count[3] = {0};

    for (int s = DOCTOR_HURTS; s >= DOCTOR_GOOD; s--)
        for (int i = 0; i < n; i++) {
            if ((int)f[i].severity != s)
                continue;
            count[s]++;
            fprintf(out, "%-5s  %-16s %s\n", doctor_word(f[i].severity), f[i].what,
                    f[i].text);
            if (f[i].remedy[0])
                fprintf(out, "%24s-> %s\n", "", f[i].remedy);
        }
    fprintf(out, "\n%d problem%s, %d note%s, %d good\n", count[DOCTOR_HURTS],
            count[DOCTOR_HURTS] == 1 ? "" : "s", count[DOCTOR_NOTE],
            count[DOCTOR_NOTE] == 1 ? "" : "s", count[DOCTOR_GOOD]);
    return count[DOCTOR_HURTS]  ? DOCTOR_HURTS
           : count[DOCTOR_NOTE] ? DOCTOR_NOTE
                                : DOCTOR_GOOD;
}
