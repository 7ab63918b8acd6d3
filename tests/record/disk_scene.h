// One trouble with the disk, shared by disk.c (the order of things), disk_trouble.c (the troubles)
// and disk_judge.c (what the log says).
#ifndef ACTD_TEST_RECORD_DISK_SCENE_H
#define ACTD_TEST_RECORD_DISK_SCENE_H

#include "tests/record/disk.h"
#include "tests/record/tally.h"

enum disk_trouble { FULL_TMPFS, DEV_FULL, BROKEN, SLOW, REMOVED, DISK_TROUBLES };
extern const char *const disk_trouble_name[DISK_TROUBLES];

struct disk_scene {
    struct rig_daemon daemon;
    struct rig_robot robot;
    struct twin *twin;
    struct disk_orders *orders;
    char orders_file[PATH_MAX], environment[PATH_MAX + 16], preload[PATH_MAX];
    enum disk_trouble trouble;
    ns_t half_ns;
    bool mounted;
    struct rig_tally tally;
    // Of one round: ticks that the robot saw while it was recorded, at least and at most.
    uint64_t least, most;
    ns_t stopped_ns;
};

// ---- disk_trouble.c ------------------------------------------------------------------------------
int disk_trouble_prepare(struct disk_scene *s); // before the daemon starts; 0 or -errno
int disk_trouble_begin(struct disk_scene *s);
int disk_trouble_end(struct disk_scene *s);
int disk_trouble_clear(
    struct disk_scene *s); // no recordings; as before the first trouble
void disk_trouble_free(struct disk_scene *s);

// ---- disk_judge.c --------------------------------------------------------------------------------
// Recording has gone on to its end, and every tick that ran is in it or in what the log says was
// lost. 0 or -1, said.
int disk_judge_log(const struct disk_scene *s);

#endif
