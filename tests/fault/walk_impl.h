// What the walk's own files share. Nobody else includes this.
#ifndef ACTD_FAULT_WALK_IMPL_H
#define ACTD_FAULT_WALK_IMPL_H

#include "tests/fault/walk.h"

uint32_t walk_pick(struct walk *k, uint32_t n);                 // 0 … n - 1
double walk_between(struct walk *k, double least, double most); // [least, most)
bool walk_chance(struct walk *k, double part);

// A configuration at random.
void walk_robot(struct walk *k, struct world_config *c);

#endif
