// One segment: NAME.part while it is written, with a lock on it, so that nobody takes it for one
// that was left behind; NAME once its summary is there and synced.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/recorder_parts.h"

// ---- disk --------------------------------------------------------------------------------------

// What the disk is asked for goes by here: whoever looks from outside sees since when it hangs.
static ns_t ask(struct recorder_file *f)
{
    ns_t now = clock_now_ns();

    atomic_store_explicit(f->busy_since_ns, now, memory_order_relaxed);
    return now;
}

static void answered(struct recorder_file *f, ns_t since)
{
    ns_t took = clock_now_ns() - since;

    atomic_store_explicit(f->busy_since_ns, 0, memory_order_relaxed);
    if (took > f->slowest_ns)
        f->slowest_ns = took;
}

static int put(void *arg, const struct iovec *v, int n)
{
    struct recorder_file *f = arg;
    ns_t since = ask(f);
    int rc = f->disk->write(f->disk->arg, f->fd, v, n);

    answered(f, since);
    f->dirty = true;
    return rc;
}

static int sync_file(struct recorder_file *f)
{
    ns_t since = ask(f);
    int rc = f->disk->sync(f->disk->arg, f->fd);

    answered(f, since);
    if (rc == 0)
        f->dirty = false;
    return rc;
}

static void part_name(char out[RECORDER_NAME], const char *name)
{
    snprintf(out, RECORDER_NAME, "%.*s" RECORDER_PART, RECORDER_NAME - 8, name);
}

// ---- begin -------------------------------------------------------------------------------------

static bool taken(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_part(struct recorder_file *f, const char *name)
{
    char part[RECORDER_NAME], fault[RECORDER_NAME];
    ns_t since;

    recorder_name_fault(fault, name);
    if (taken(f->dir, name) || taken(f->dir, fault))
        return -EEXIST;
    part_name(part, name);
    since = ask(f);
    f->fd = f->disk->open(f->disk->arg, f->dir, part);
    answered(f, since);
    if (f->fd < 0)
        return f->fd;
    // Where locks are not to be had (some network disks) it must do without.
    (void)flock(f->fd, LOCK_EX | LOCK_NB);
    snprintf(f->name, sizeof f->name, "%s", name);
    return 0;
}

static int begin_writer(struct recorder_file *f, const struct recorder_own *own)
{
    struct mcap_writer_options opt = {
        .profile = "", .library = own->library, .write = put, .arg = f};
    int rc = mcap_writer_new(&f->writer, &opt);

    return rc ? rc : mcap_writer_metadata(f->writer, "actd", own->pair, own->n);
}

static void close_all(struct recorder_file *f)
{
    mcap_writer_free(f->writer);
    f->writer = NULL;
    if (f->fd >= 0)
        close(f->fd);
    if (f->dir >= 0)
        close(f->dir);
    f->fd = f->dir = -1;
}

int recorder_file_begin(struct recorder_file *f, const char *path, const char *name,
                        const struct recorder_own *own, ns_t now, const char **what)
{
    char part[RECORDER_NAME];
    int rc;

    f->fd = -1;
    f->fault = f->dirty = false;
    f->repeated = 0;
    memset(f->known, 0, sizeof f->known);
    memset(f->known_schema, 0, sizeof f->known_schema);
    f->begun_ns = f->synced_ns = now;
    *what = "use the directory";
    f->dir = recorder_directory(path);
    if (f->dir < 0)
        return f->dir;
    *what = "make a file";
    rc = open_part(f, name);
    if (rc == 0) {
        *what = "write a file";
        rc = begin_writer(f, own);
        part_name(part, name);
        if (rc != 0)
            (void)unlinkat(f->dir, part, 0); // nothing is in it
    }
    if (rc != 0)
        close_all(f);
    return rc;
}

// ---- put ---------------------------------------------------------------------------------------

static int know(struct recorder_file *f, const struct recorder_channels *c, uint16_t id)
{
    const struct mcap_channel *channel = &c->channel[id];
    int rc = 0;

    if (f->known[id])
        return 0;
    if (channel->schema != 0 && !f->known_schema[channel->schema])
        rc = mcap_writer_schema(f->writer, &c->schema[channel->schema], false);
    if (rc == 0) {
        f->known_schema[channel->schema] = true;
        rc = mcap_writer_channel(f->writer, channel, false);
    }
    f->known[id] = rc == 0;
    return rc;
}

int recorder_file_put(struct recorder_file *f, const struct recorder_channels *c,
                      const struct mcap_chunk *chunk)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < chunk->facts.n_channels; i++)
        rc = know(f, c, chunk->facts.channel[i].id);
    return rc ? rc : mcap_writer_chunk(f->writer, chunk);
}

void recorder_file_fault(struct recorder_file *f)
{
    char name[RECORDER_NAME], from[RECORDER_NAME], to[RECORDER_NAME];

    if (f->writer == NULL || f->fault)
        return;
    recorder_name_fault(name, f->name);
    part_name(from, f->name);
    part_name(to, name);
    // At once: should we be killed, whoever recovers it knows that it is worth keeping.
    if (renameat(f->dir, from, f->dir, to) != 0)
        return;
    f->fault = true;
    memcpy(f->name, name, sizeof name);
}

int recorder_file_look(struct recorder_file *f, ns_t now, const char **what)
{
    char part[RECORDER_NAME];
    struct stat ours, there;
    int rc = 0;

    if (now - f->synced_ns < RECORDER_SYNC_NS)
        return 0;
    f->synced_ns = now;
    *what = "sync a file";
    if (f->dirty)
        rc = sync_file(f);
    if (rc != 0)
        return rc;
    *what = "find the file that was being written";
    part_name(part, f->name);
    if (fstat(f->fd, &ours) != 0 ||
        fstatat(f->dir, part, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev ? 0 : -ENOENT;
}

// ---- end ---------------------------------------------------------------------------------------

static int finish(struct recorder_file *f, const char **what)
{
    char part[RECORDER_NAME];
    int rc;

    *what = "finish a file";
    rc = mcap_writer_finish(f->writer);
    rc = rc ? rc : sync_file(f);
    if (rc != 0)
        return rc;
    part_name(part, f->name);
    *what = "rename a file";
    if (renameat(f->dir, part, f->dir, f->name) != 0)
        return -errno;
    (void)f->disk->sync(f->disk->arg, f->dir); // the name, too
    return 0;
}

// A writer that failed counts what is good; a cut there makes the file a good one again.
static int cut(struct recorder_file *f)
{
    off_t good = (off_t)mcap_writer_bytes(f->writer);

    if (ftruncate(f->fd, good) != 0 || lseek(f->fd, good, SEEK_SET) != good)
        return -errno;
    return 0;
}

int recorder_file_end(struct recorder_file *f, int rc, const char **what)
{
    char part[RECORDER_NAME];
    uint64_t good;

    if (f->writer == NULL)
        return 0;
    good = mcap_writer_bytes(f->writer);
    *what = "cut a file";
    rc = rc != 0 ? cut(f) : 0;
    if (rc == 0)
        rc = finish(f, what);
    // A summary that found no room is cut off again: what is left is whole but for its end.
    if (rc != 0)
        (void)!ftruncate(f->fd, (off_t)good);
    // A disk that stays full must not fill with files that hold nothing.
    part_name(part, f->name);
    if (rc != 0 && mcap_writer_messages(f->writer) <= f->repeated &&
        unlinkat(f->dir, part, 0) == 0) {
        f->name[0] = 0;
        rc = 0;
    }
    close_all(f);
    return rc;
}
