// The thread that writes. It looks for a fault every 10 ms: the loop makes no system call to wake
// it. It copies the rows out of the ring first, which takes milliseconds, and then writes at
// the disk's own speed; a disk that hangs is no one's trouble but this thread's.
//
//   RING: may touch the ring   -copied->   DISK: its own memory only   -written->   RING
//
// blackbox_writer_stop gives up waiting only in DISK, by setting LEFT there; the thread finds
// that when the disk lets it go, and frees what is left. So the ring can go with the loop.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/blackbox_impl.h"
#include "daemon/blind.h"
#include "daemon/rt.h"

#define POLL_NS    (10 * NS_PER_MS)
#define EVERY_NS   NS_PER_S       // a file, in the long run
#define AT_ONCE_NS (3 * EVERY_NS) // and four of them without a pause
#define STOP_NS    (3 * NS_PER_S)
#define BLOCK      (256 * 1024) // bytes per write

enum { PHASE_RING, PHASE_DISK, PHASE_LEFT };

// ---- rows --------------------------------------------------------------------------------------

static struct blackbox_record *row(struct blackbox_writer *w, uint64_t i)
{
    return (struct blackbox_record *)(void *)(w->copy + i * w->bytes);
}

// From 5 s before the fault to now. What the loop overwrote meanwhile is missing at the front.
static void copy_rows(struct blackbox_writer *w, struct blackbox_dump *d, uint64_t fault)
{
    const struct blackbox *b = w->ring;
    uint64_t last = blackbox_count(b);
    uint64_t first = last >= b->capacity ? last - b->capacity + 1 : 1;

    d->rows = 0;
    if (!blackbox_at(b, fault, row(w, 0)) && !blackbox_at(b, last, row(w, 0)))
        return;
    d->zero_ns = row(w, 0)->now_ns;
    for (uint64_t n = first; n <= last; n++)
        if (blackbox_at(b, n, row(w, d->rows)) &&
            row(w, d->rows)->now_ns >= d->zero_ns - BLACKBOX_NS)
            d->rows++;
}

// ---- file --------------------------------------------------------------------------------------

static int flush(struct blackbox_writer *w, int fd)
{
    size_t done = 0;

    while (done < w->text.n) {
        ssize_t n = w->write(fd, w->text.data + done, w->text.n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    w->text.n = 0;
    return 0;
}

static int write_rows(struct blackbox_writer *w, const struct blackbox_dump *d, int fd)
{
    int rc = 0;

    w->text.n = 0;
    blackbox_csv_header(&w->text, &w->columns);
    for (uint64_t i = 0; rc == 0 && i < d->rows; i++) {
        if (w->text.size - w->text.n < BLACKBOX_ROW_MAX)
            rc = flush(w, fd);
        blackbox_csv_row(&w->text, &w->columns, row(w, i), d->zero_ns);
    }
    return rc == 0 ? flush(w, fd) : rc;
}

static void say(struct blackbox_writer *w, int rc, const char *what)
{
    w->counts.last_error[0] = 0;
    if (rc != 0)
        blackbox_file_say(w->counts.last_error, sizeof w->counts.last_error, w->directory,
                          what, rc);
}

static void failed(struct blackbox_writer *w, int rc, const char *what)
{
    if (BLIND(BLIND_DISK))
        return;
    pthread_mutex_lock(&w->lock);
    w->counts.failed++;
    say(w, rc, what);
    pthread_mutex_unlock(&w->lock);
}

// rc: of removing the old ones, which is said but does not make this one a failure.
static void dumped(struct blackbox_writer *w, const char *name, int rc)
{
    pthread_mutex_lock(&w->lock);
    w->counts.dumped++;
    snprintf(w->counts.last_path, sizeof w->counts.last_path, "%.*s/%s", 700,
             w->directory, name);
    say(w, rc, "remove old files");
    pthread_mutex_unlock(&w->lock);
}

static void write_file(struct blackbox_writer *w, const struct blackbox_dump *d, int dir)
{
    char name[BLACKBOX_NAME];
    int fd = -1, rc = blackbox_file_name(name, dir, w->instance, d->wall_ns, d->reason);

    if (rc == 0)
        rc = fd = blackbox_file_open(dir, name);
    if (rc < 0) {
        failed(w, rc, "make a file");
        return;
    }
    rc = blackbox_file_close(dir, name, fd, write_rows(w, d, fd));
    if (rc != 0)
        failed(w, rc, "write a file");
    else
        dumped(w, name, blackbox_file_prune(dir, w->instance, w->keep, name));
}

static void write_dump(struct blackbox_writer *w, const struct blackbox_dump *d)
{
    int dir = blackbox_file_directory(w->directory);

    if (dir < 0) {
        failed(w, dir, "use the directory");
        return;
    }
    write_file(w, d, dir);
    close(dir);
}

// ---- thread ------------------------------------------------------------------------------------

bool blackbox_writer_poll(struct blackbox_writer *w, ns_t now_ns, bool all)
{
    struct blackbox_dump d = {.zero_ns = now_ns};
    uint64_t fault;
    int disk = PHASE_DISK;

    if (atomic_load_explicit(&w->ring->pending, memory_order_relaxed) == 0 ||
        (!all && now_ns < w->paid_ns - AT_ONCE_NS))
        return true;
    w->paid_ns = (w->paid_ns > now_ns ? w->paid_ns : now_ns) + EVERY_NS;
    fault = atomic_exchange_explicit(&w->ring->pending, 0, memory_order_acquire);
    d.reason = blackbox_fault_reason(fault);
    copy_rows(w, &d, blackbox_fault_number(fault));
    d.wall_ns = clock_wall_ns() - (now_ns - d.zero_ns);

    atomic_store(&w->phase, PHASE_DISK);
    write_dump(w, &d);
    return atomic_compare_exchange_strong(&w->phase, &disk, PHASE_RING);
}

static void *run(void *arg)
{
    struct blackbox_writer *w = arg;
    bool stop, mine = true;

    do {
        stop = atomic_load(&w->stop);
        mine = blackbox_writer_poll(w, clock_now_ns(), stop);
        if (mine && !stop)
            clock_sleep_until(clock_now_ns() + POLL_NS);
    } while (mine && !stop);
    if (mine)
        atomic_store(&w->done, true);
    else
        blackbox_writer_free(w);
    return NULL;
}

// ---- start and stop ----------------------------------------------------------------------------

static int copy_names(char **to, const char *const *from, int n)
{
    for (int i = 0; i < n; i++) {
        to[i] = strdup(from[i]);
        if (to[i] == NULL)
            return -ENOMEM;
    }
    return 0;
}

// Touched now: the first fault should not have to find memory.
static int make_room(struct blackbox_writer *w)
{
    size_t bytes = w->ring->capacity * w->bytes;

    w->copy = malloc(bytes);
    w->text = (struct blackbox_text){.data = malloc(BLOCK), .size = BLOCK};
    if (w->copy == NULL || w->text.data == NULL)
        return -ENOMEM;
    memset(w->copy, 0, bytes);
    memset(w->text.data, 0, BLOCK);
    return 0;
}

// What is wrong with the directory is better known now than at the first fault.
static void try_directory(struct blackbox_writer *w)
{
    int dir = blackbox_file_directory(w->directory);

    if (dir < 0)
        failed(w, dir, "use the directory");
    else if (faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        failed(w, -errno, "write there");
    if (dir >= 0)
        close(dir);
}

int blackbox_writer_make(struct blackbox_writer **out, struct blackbox *b,
                         const struct blackbox_writer_config *cfg)
{
    struct blackbox_writer *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (w == NULL)
        return -ENOMEM;
    pthread_mutex_init(&w->lock, NULL);
    w->ring = b;
    w->bytes = blackbox_record_bytes(b);
    w->keep = cfg->keep > 0 ? cfg->keep : BLACKBOX_KEEP;
    w->write = cfg->write != NULL ? cfg->write : write;
    w->columns =
        (struct blackbox_columns){b->joints, b->cameras, (const char *const *)w->joint,
                                  (const char *const *)w->camera};
    rc = copy_names(&w->directory, &cfg->directory, 1);
    rc = rc ? rc : copy_names(&w->instance, &cfg->instance, 1);
    rc = rc ? rc : copy_names(w->joint, cfg->joint, b->joints);
    rc = rc ? rc : copy_names(w->camera, cfg->camera, b->cameras);
    rc = rc ? rc : make_room(w);
    if (rc != 0) {
        blackbox_writer_free(w);
        return rc;
    }
    try_directory(w);
    *out = w;
    return 0;
}

void blackbox_writer_free(struct blackbox_writer *w)
{
    if (w == NULL)
        return;
    for (int i = 0; i < ACTD_MAX_JOINTS; i++)
        free(w->joint[i]);
    for (int i = 0; i < POLICY_MAX_CAMERAS; i++)
        free(w->camera[i]);
    free(w->directory);
    free(w->instance);
    free(w->copy);
    free(w->text.data);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int blackbox_writer_start(struct blackbox_writer **out, struct blackbox *b,
                          const struct blackbox_writer_config *cfg)
{
    int rc = blackbox_writer_make(out, b, cfg);

    if (rc != 0)
        return rc;
    rc = rt_thread_create(&(*out)->thread, "actd-blackbox", RT_CLASS_PLAIN, 0, run, *out);
    if (rc != 0) {
        blackbox_writer_free(*out);
        *out = NULL;
    }
    return rc;
}

void blackbox_writer_stop(struct blackbox_writer *w)
{
    ns_t until_ns = clock_now_ns() + STOP_NS;
    pthread_t thread;

    if (w == NULL)
        return;
    thread = w->thread;
    atomic_store(&w->stop, true);
    while (!atomic_load(&w->done)) {
        int disk = PHASE_DISK;

        clock_sleep_until(clock_now_ns() + POLL_NS / 5);
        if (clock_now_ns() >= until_ns &&
            atomic_compare_exchange_strong(&w->phase, &disk, PHASE_LEFT)) {
            pthread_detach(thread);
            return;
        }
    }
    pthread_join(thread, NULL);
    blackbox_writer_free(w);
}

void blackbox_writer_counts(struct blackbox_writer *w, struct blackbox_counts *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->counts;
    pthread_mutex_unlock(&w->lock);
    out->superseded = atomic_load_explicit(&w->ring->superseded, memory_order_relaxed);
}
