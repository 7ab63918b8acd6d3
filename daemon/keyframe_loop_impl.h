// What a keyframe of the loop is made of, for the two files that write and read it:
//
//   struct keyframe_head
//   what the loop remembers: struct loop from `guard` to its end
//   struct chunks, and struct live of each live chunk
//   the rows of each: (rows, joints) float
//
// What is configured is zero in it, as are pointers and what each tick makes anew: so two loops
// that remember the same give the same bytes, wherever their memory lies.
#ifndef ACTD_KEYFRAME_LOOP_IMPL_H
#define ACTD_KEYFRAME_LOOP_IMPL_H

#include "daemon/chunks_impl.h"
#include "daemon/keyframe.h"
#include "daemon/loop_impl.h"

#define KEYFRAME_LOOP_FROM  offsetof(struct loop, guard)
#define KEYFRAME_LOOP_BYTES (sizeof(struct loop) - KEYFRAME_LOOP_FROM)
#define KEYFRAME_LOOP_FIXED \
    (sizeof(struct keyframe_head) + KEYFRAME_LOOP_BYTES + sizeof(struct chunks))

#endif
