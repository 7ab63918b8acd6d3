// The contact sheet of one episode: what both cameras saw over time, the tip's path from above and
// from the side with the goal, and its distance to the goal, as one PNG that a person can read.
#ifndef ACTD_SIM_SHEET_H
#define ACTD_SIM_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sim/plant.h"

#define SHEET_EVERY_S 0.04

enum { SHEET_STORY_MAX = 160 }; // more than the 6 s of an episode

// An episode as snapshots; all zero is an empty one.
struct sheet_story {
    int n;
    bool succeeded;
    double distance_m; // at the end
    struct snapshot s[SHEET_STORY_MAX];
};

// True when the next snapshot is due at sim time time_s.
bool sheet_story_due(const struct sheet_story *story, double time_s);
void sheet_story_add(struct sheet_story *story, const struct snapshot *s);

// Draws the story through a renderer of its own, for which it may take half a second; changes
// the state of `scene`. plain thread that owns no other EGL context. 0 or -errno.
int sheet_draw(struct scene *scene, const struct sheet_story *story, const char *path,
               uint64_t seed);

#endif
