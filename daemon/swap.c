// swap: the face. What is shared among plain threads lies under one mutex, held for a few
// copies; the worker and the loop never touch it.
//
// `current` and `previous` change in the job's thread alone. A policy that is neither may
// be freed once nobody holds one: whoever says swap_hold after that gets another.
#include "daemon/swap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/rt.h"
#include "daemon/swap_impl.h"

#define POLL_NS (2 * NS_PER_MS)
// Loading gives way to whatever else runs, but not for ever: at nice 19 it got 1.4 % of cores that
// were busy, and 0.2 s of work took 20 s; at 10 it is a tenth of them.
#define SWAP_NICE    10
#define STOP_LONGEST NS_PER_S // then the rest is left to swap_free

// ---- for the job -----------------------------------------------------------------------------

void swap_publish(struct swap *s)
{
    const struct swap_report *r = &s->job.report;
    pthread_mutex_lock(&s->mutex);
    s->kept[r->number % SWAP_KEPT] = *r;
    pthread_mutex_unlock(&s->mutex);
}

bool swap_commits(struct swap *s)
{
    bool yes;
    pthread_mutex_lock(&s->mutex);
    yes = s->committing = !atomic_load(&s->cancel);
    if (yes)
        s->job.candidate->generation = s->job.candidate->seat.generation =
            ++s->generations;
    pthread_mutex_unlock(&s->mutex);
    return yes;
}

void swap_takes_over(struct swap *s)
{
    struct swap_job *j = &s->job;
    pthread_mutex_lock(&s->mutex);
    j->before = s->previous;
    j->before_tick = s->since_tick;
    s->previous = s->current;
    s->current = j->candidate;
    pthread_mutex_unlock(&s->mutex);
    if (s->src.seated)
        s->src.seated(s->src.seated_arg, s->current);
}

void swap_gives_back(struct swap *s)
{
    struct swap_job *j = &s->job;
    pthread_mutex_lock(&s->mutex);
    s->current = s->previous;
    s->previous = j->before;
    s->since_tick = j->before_tick;
    s->current->generation = s->current->seat.generation = ++s->generations;
    pthread_mutex_unlock(&s->mutex);
    if (s->src.seated)
        s->src.seated(s->src.seated_arg, s->current);
}

bool swap_unheld(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    bool yes = s->holds == 0;
    pthread_mutex_unlock(&s->mutex);
    return yes;
}

void swap_unload(struct swap *s, struct fitted *f)
{
    if (f && s->src.unload)
        s->src.unload(s->src.load_arg, f);
    else
        fitted_free(f);
}

void swap_decided(struct swap *s)
{
    const struct swap_report *r = &s->job.report;
    pthread_mutex_lock(&s->mutex);
    s->kept[r->number % SWAP_KEPT] = *r;
    s->done += r->stage == SWAP_DONE;
    s->failed += r->stage == SWAP_FAILED;
    if (r->stage == SWAP_DONE)
        s->since_tick = r->tick;
    pthread_mutex_unlock(&s->mutex);
}

void swap_ended(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    s->busy = s->committing = false;
    pthread_mutex_unlock(&s->mutex);
}

// ---- to ask ----------------------------------------------------------------------------------

static void begin(struct swap *s, const struct swap_request *r, const char *to)
{
    struct swap_job *j = &s->job;
    *j = (struct swap_job){.request = *r};
    j->report = (struct swap_report){.number = ++s->number,
                                     .stage = SWAP_LOADING,
                                     .bound_rad = s->src.cfg->swap.max_difference,
                                     .golden_error = -1};
    memcpy(j->report.from, s->current->name, sizeof j->report.from);
    memcpy(j->report.from_digest, s->current->info->digest, sizeof j->report.from_digest);
    memcpy(j->report.to, to, strnlen(to, CONFIG_NAME - 1));
    if (!s->src.by_hand)
        j->begin_ns = clock_now_ns();
    atomic_store(&s->cancel, false);
    s->cancel_why[0] = '\0';
    s->busy = true;
    s->kept[j->report.number % SWAP_KEPT] = j->report;
    pthread_cond_broadcast(&s->changed);
}

// Under the mutex.
static int may_begin(struct swap *s, const struct swap_request *r, char why[],
                     size_t size)
{
    if (s->stop) {
        snprintf(why, size, "actd is about to end");
        return -ECANCELED;
    }
    if (s->busy) {
        snprintf(why, size,
                 "swap %llu, to %s, is under way: wait until it is over (a stop calls it "
                 "off, and stops the arm)",
                 (unsigned long long)s->number, s->job.report.to);
        return -EBUSY;
    }
    if (r->back && !s->previous) {
        snprintf(why, size, "there is no policy to go back to: none was swapped yet");
        return -ENOENT;
    }
    return 0;
}

int swap_begin(struct swap *s, const struct swap_request *r, uint64_t *number, char why[],
               size_t size)
{
    int rc = 0;
    why[0] = '\0';
    if (!r->back && !swap_name_fits(r->name, why, size))
        return -EINVAL;
    if (!r->back && !s->src.load && !s->src.cfg->swap.directory[0]) {
        snprintf(why, size, "there is no directory of policies: set swap.directory in %s",
                 s->src.cfg->file);
        return -EINVAL;
    }
    pthread_mutex_lock(&s->mutex);
    rc = may_begin(s, r, why, size);
    if (rc == 0) {
        begin(s, r, r->back ? s->previous->name : r->name);
        *number = s->number;
    }
    pthread_mutex_unlock(&s->mutex);
    return rc;
}

void swap_cancel(struct swap *s, const char *why)
{
    pthread_mutex_lock(&s->mutex);
    if (s->busy && !s->committing && !atomic_load(&s->cancel)) {
        snprintf(s->cancel_why, sizeof s->cancel_why, "%s", why);
        atomic_store(&s->cancel, true);
    }
    pthread_mutex_unlock(&s->mutex);
}

// ---- to look ---------------------------------------------------------------------------------

bool swap_look(struct swap *s, uint64_t number, struct swap_report *out)
{
    pthread_mutex_lock(&s->mutex);
    *out = s->kept[number % SWAP_KEPT];
    pthread_mutex_unlock(&s->mutex);
    return number != 0 && out->number == number;
}

bool swap_busy(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    bool yes = s->busy;
    pthread_mutex_unlock(&s->mutex);
    return yes;
}

const struct fitted *swap_hold(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    const struct fitted *f = s->current;
    s->holds++;
    pthread_mutex_unlock(&s->mutex);
    return f;
}

void swap_release(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    s->holds--;
    pthread_mutex_unlock(&s->mutex);
}

void swap_policy_status(struct swap *s, struct swap_policy *out)
{
    *out = (struct swap_policy){.name = ""};
    pthread_mutex_lock(&s->mutex);
    const struct fitted *f = s->current;
    memcpy(out->name, f->name, sizeof out->name);
    memcpy(out->directory, f->directory, sizeof out->directory);
    memcpy(out->type, f->info->type, sizeof out->type);
    snprintf(out->precision, sizeof out->precision, "%s",
             precision_name(f->info->precision));
    memcpy(out->digest, f->info->digest, sizeof out->digest);
    memcpy(out->config_sha256, f->info->config_sha256, sizeof out->config_sha256);
    memcpy(out->weights_sha256, f->info->weights_sha256, sizeof out->weights_sha256);
    memcpy(out->statistics_sha256, f->info->statistics_sha256,
           sizeof out->statistics_sha256);
    out->generation = f->generation;
    out->since_tick = s->since_tick;
    if (s->previous)
        memcpy(out->previous, s->previous->name, sizeof out->previous);
    out->swaps = s->done;
    out->swaps_failed = s->failed;
    if (s->busy && s->kept[s->number % SWAP_KEPT].stage < SWAP_DONE)
        memcpy(out->swapping_to, s->job.report.to, sizeof out->swapping_to);
    pthread_mutex_unlock(&s->mutex);
}

// ---- what there is ---------------------------------------------------------------------------

// Is this the policy that swap.directory has under its name?
static bool from_directory(const struct swap *s, const struct fitted *f)
{
    char path[CONFIG_PATH + CONFIG_NAME];
    size_t n =
        (size_t)snprintf(path, sizeof path, "%s/%s", s->src.cfg->swap.directory, f->name);
    return s->src.cfg->swap.directory[0] && strncmp(f->directory, path, n) == 0 &&
           (f->directory[n] == '\0' || f->directory[n] == '/');
}

// Under the mutex. One entry for each of the two that is from elsewhere.
static int elsewhere(const struct swap *s, struct swap_entry *out, int max)
{
    const struct fitted *two[] = {s->current, s->previous};
    int n = 0;
    for (int i = 0; i < 2 && n < max; i++) {
        if (!two[i] || from_directory(s, two[i]))
            continue;
        out[n] =
            (struct swap_entry){.running = i == 0, .previous = i == 1, .usable = true};
        memcpy(out[n].name, two[i]->name, sizeof out[n].name);
        snprintf(out[n++].note, sizeof out->note, "from %.220s, not in swap.directory",
                 two[i]->directory);
    }
    return n;
}

static void mark(struct swap *s, struct swap_entry *e, int n)
{
    const struct fitted *a = s->current, *b = s->previous;
    bool current = from_directory(s, a), previous = b && from_directory(s, b);
    for (int i = 0; i < n; i++) {
        e[i].running = current && strcmp(e[i].name, a->name) == 0;
        e[i].previous = previous && strcmp(e[i].name, b->name) == 0;
    }
}

int swap_list(struct swap *s, struct swap_entry *out, int max)
{
    pthread_mutex_lock(&s->mutex);
    int first = elsewhere(s, out, max);
    pthread_mutex_unlock(&s->mutex);
    if (!s->src.cfg->swap.directory[0])
        return first;
    int n = swap_files_list(s->src.cfg, out, first, max);
    if (n < 0)
        return n;
    pthread_mutex_lock(&s->mutex);
    mark(s, out + first, n - first);
    pthread_mutex_unlock(&s->mutex);
    swap_notes_tell(s, out + first, n - first);
    return n;
}

// ---- thread ----------------------------------------------------------------------------------

bool swap_turn(struct swap *s, ns_t now_ns)
{
    pthread_mutex_lock(&s->mutex);
    bool busy = s->busy;
    pthread_mutex_unlock(&s->mutex);
    return busy && swap_job_turn(s, now_ns);
}

// True when there is a swap to be made, false when the thread is to end.
static bool wait_for_one(struct swap *s)
{
    pthread_mutex_lock(&s->mutex);
    while (!s->busy && !s->stop)
        pthread_cond_wait(&s->changed, &s->mutex);
    bool yes = s->busy;
    pthread_mutex_unlock(&s->mutex);
    return yes;
}

static bool must_end(struct swap *s, ns_t now)
{
    pthread_mutex_lock(&s->mutex);
    bool yes = s->stop && now - s->stop_ns > STOP_LONGEST;
    pthread_mutex_unlock(&s->mutex);
    return yes;
}

static void *swap_main(void *arg)
{
    struct swap *s = arg;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), SWAP_NICE);
    while (wait_for_one(s))
        while (swap_job_turn(s, clock_now_ns())) {
            if (must_end(s, clock_now_ns()))
                return NULL;
            clock_sleep_until(clock_now_ns() + POLL_NS);
        }
    return NULL;
}

// ---- begin and end ---------------------------------------------------------------------------

int swap_new(struct swap **out, const struct swap_source *src)
{
    struct swap *s = calloc(1, sizeof *s);
    int rc;
    *out = NULL;
    if (!s) {
        if (src->unload)
            src->unload(src->load_arg, src->first);
        else
            fitted_free(src->first);
        return -ENOMEM;
    }
    s->src = *src;
    s->current = src->first;
    s->rows = src->first->seat.horizon_rows;
    s->generations = src->first->generation;
    rc = pthread_mutex_init(&s->mutex, NULL);
    if (rc == 0) {
        rc = pthread_cond_init(&s->changed, NULL);
        s->mutex_ready = rc == 0;
        if (rc)
            pthread_mutex_destroy(&s->mutex);
    }
    rc = -rc; // pthread's errors are positive
    if (rc == 0 && !src->by_hand) {
        rc = rt_thread_create(&s->thread, "actd-swap", RT_CLASS_PLAIN, 0, swap_main, s);
        s->thread_runs = rc == 0;
    }
    if (rc) {
        swap_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void swap_stop(struct swap *s)
{
    if (!s || !s->mutex_ready)
        return;
    swap_cancel(s, "actd ends");
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    s->stop_ns = clock_now_ns();
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (s->thread_runs)
        pthread_join(s->thread, NULL);
    s->thread_runs = false;
}

void swap_free(struct swap *s)
{
    if (!s)
        return;
    swap_stop(s);
    struct swap_job *j = &s->job; // as far as it got
    if (j->candidate != s->current && j->candidate != s->previous &&
        j->candidate != j->before)
        swap_unload(s, j->candidate);
    if (j->before != s->current && j->before != s->previous)
        swap_unload(s, j->before);
    if (s->previous != s->current)
        swap_unload(s, s->previous);
    swap_unload(s, s->current);
    free(j->running);
    free(j->tried);
    if (s->mutex_ready) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->mutex);
    }
    free(s);
}
