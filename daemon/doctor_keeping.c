// doctor_keeping: time that agrees with other machines', and room for what is written.
#include <errno.h>
#include <string.h>

#include "daemon/config_black_box.h"
#include "daemon/doctor_impl.h"

#define ROOM_BYTES   1e9 // free, at least, and
#define ROOM_PERCENT 10  // of the disk

static void time_sync(struct doctor *d)
{
    struct doctor_finding *f;

    if (!d->m->time_known)
        doctor_unknown(d, "time", "adjtimex is not allowed here");
    else if (d->m->synced)
        doctor_say(d, "time", DOCTOR_GOOD, "the clock is synchronised, to within %.3g s",
                   d->m->time_error_s);
    else {
        f = doctor_say(
            d, "time", DOCTOR_NOTE,
            "the clock is not synchronised: stamps of drivers on other machines and "
            "times in logs drift (the loop itself does not go by it)");
        doctor_mend(f, "sudo apt install chrony  # or sudo timedatectl set-ntp true");
    }
}

// statvfs of a directory that may not be there yet: of the one that it will be made in. path is
// cut to it.
static int disk_of(const struct doctor *d, char *path, struct statvfs *v)
{
    char whole[CONFIG_PATH * 2];

    for (;;) {
        char *slash;

        snprintf(whole, sizeof whole, "%s%s", d->m->root, path[0] ? path : "/");
        if (d->m->disk(whole, v) == 0)
            return 0;
        slash = strrchr(path, '/');
        if (errno != ENOENT || !slash)
            return -errno;
        *slash = '\0';
    }
}

// Written: the daemon writes there while the arm moves. The others it only reads, and its service
// sees them read-only on purpose.
static void judge_disk(struct doctor *d, const char *what, const char *directory,
                       const char *there, const struct statvfs *v, bool written)
{
    double room = (double)v->f_bavail * (double)v->f_frsize;
    double all = (double)v->f_blocks * (double)v->f_frsize;
    double percent = all > 0 ? 100 * room / all : 0;
    bool no_inode = v->f_files && !v->f_favail; // some file systems count none
    struct doctor_finding *f;

    if (written && v->f_flag & ST_RDONLY) {
        f = doctor_say(d, what, DOCTOR_HURTS, "%s lies on a disk that is read-only",
                       directory);
        doctor_mend(f, "sudo mount -o remount,rw %s", there);
        return;
    }
    if (room >= ROOM_BYTES && percent >= ROOM_PERCENT && !no_inode) {
        doctor_say(d, what, DOCTOR_GOOD, "%.0f GB free (%.0f %%) for %s", room / 1e9,
                   percent, directory);
        return;
    }
    f = doctor_say(d, what, written ? DOCTOR_HURTS : DOCTOR_NOTE,
                   "%.2f GB free (%.0f %%)%s for %s: %s", room / 1e9, percent,
                   no_inode ? ", no inode" : "", directory,
                   written ? "black boxes and logs will be lost"
                           : "new policies will not fit");
    doctor_mend(
        f,
        "sudo du -xh --max-depth=2 %s | sort -h | tail  # delete, or name another "
        "directory",
        there);
}

static void disk(struct doctor *d, const char *what, const char *directory, bool written)
{
    char path[CONFIG_PATH];
    struct statvfs v;
    int rc;

    snprintf(path, sizeof path, "%s", directory);
    rc = disk_of(d, path, &v);
    if (rc)
        doctor_unknown(d, what, "%s can not be looked at (%s)", directory, strerror(-rc));
    else
        judge_disk(d, what, directory, path[0] ? path : "/", &v, written);
}

void doctor_keeping(struct doctor *d)
{
    char box[CONFIG_PATH] = "/var/log/actd";

    time_sync(d);
    if (d->cfg && config_black_box(d->cfg, box, sizeof box) != 0)
        doctor_unknown(d, "log disk", "the path of the black boxes is too long");
    else
        disk(d, "log disk", box, true);
    if (d->cfg && d->cfg->swap.directory[0])
        disk(d, "policy disk", d->cfg->swap.directory, false);
    else
        disk(d, "state disk", "/var/lib/actd", false);
}
