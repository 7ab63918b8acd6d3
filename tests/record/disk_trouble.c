// Disks in trouble: a tmpfs that is too small, writes that a preloaded library spoils, a directory
// that goes away.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/record/disk_scene.h"

#define SMALL "size=4m" // two seconds of two cameras
#define LARGE "size=256m"

const char *const disk_trouble_name[DISK_TROUBLES] = {
    "a full tmpfs", "/dev/full", "every write fails (EIO)", "every write takes 5 s",
    "the directory is removed"};

static int mount_tmpfs(struct disk_scene *s, const char *options)
{
    if (mount("tmpfs", s->daemon.record, "tmpfs", s->mounted ? MS_REMOUNT : 0, options) !=
        0)
        return -errno;
    s->mounted = true;
    return 0;
}

static int make_orders(struct disk_scene *s)
{
    int fd;

    snprintf(s->orders_file, sizeof s->orders_file, "%s/orders", s->daemon.work);
    snprintf(s->environment, sizeof s->environment, "RECORD_DISK=%s", s->orders_file);
    snprintf(s->preload, sizeof s->preload, "%.4000s/record-disk.so", s->daemon.build);
    fd = open(s->orders_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *s->orders) != 0)
        return -errno;
    s->orders = mmap(NULL, sizeof *s->orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    s->daemon.preload = s->preload;
    s->daemon.environment[0] = s->environment;
    return s->orders == MAP_FAILED ? -errno : 0;
}

static int remove_all(const struct disk_scene *s, const char *what)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof command, "rm -rf '%.4000s'%s", s->daemon.record, what);
    return system(command) == 0 ? 0 : -EIO;
}

int disk_trouble_prepare(struct disk_scene *s)
{
    int rc = make_orders(s);

    if (rc != 0 || s->trouble != FULL_TMPFS)
        return rc;
    return mkdir(s->daemon.record, 0750) == 0 ? mount_tmpfs(s, SMALL) : -errno;
}

int disk_trouble_begin(struct disk_scene *s)
{
    if (s->trouble == DEV_FULL)
        s->orders->error = ENOSPC;
    else if (s->trouble == BROKEN)
        s->orders->error = EIO;
    else if (s->trouble == SLOW)
        s->orders->sleep_ms = 5000;
    else if (s->trouble == REMOVED)
        return remove_all(s, "");
    return 0; // a tmpfs is full by itself
}

int disk_trouble_end(struct disk_scene *s)
{
    s->orders->error = s->orders->sleep_ms = 0;
    return s->trouble == FULL_TMPFS ? mount_tmpfs(s, LARGE) : 0;
}

int disk_trouble_clear(struct disk_scene *s)
{
    int rc = remove_all(s, "/*");

    return rc == 0 && s->trouble == FULL_TMPFS ? mount_tmpfs(s, SMALL) : rc;
}

void disk_trouble_free(struct disk_scene *s)
{
    if (s->mounted)
        (void)umount2(s->daemon.record, MNT_DETACH);
    if (s->orders != NULL && s->orders != MAP_FAILED)
        munmap(s->orders, sizeof *s->orders);
}
