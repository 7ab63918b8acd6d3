// keyframe: what the loop and the bus remember from one tick, one message, to the next, as bytes:
// a replay that begins in the middle of a run begins with them. They are the structs themselves,
// so only the very binary that made them can take them back: each begins with a head that says
// which build it was and what it holds, and is refused otherwise.
//
//   loop   struct loop without what it was configured with, the live chunks and their rows. Taken
//          at the beginning of a tick, before anything of it. rt: one copy, some 20 us.
//   bus    what intake and cameras remember of their senders. Taken between two inputs. io.
#ifndef ACTD_KEYFRAME_H
#define ACTD_KEYFRAME_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/camera.h"
#include "daemon/intake.h"
#include "daemon/loop.h"
#include "daemon/tape.h"

#define KEYFRAME_MAGIC UINT32_C(0x4b544341) // "ACTK"
enum keyframe_kind { KEYFRAME_LOOP = 1, KEYFRAME_BUS };

struct keyframe_head {
    uint32_t magic, kind;
    uint64_t build;  // keyframe_build() of who made it
    uint64_t number; // LOOP: of the tick to come; BUS: of the last input
    ns_t at_ns;
    uint32_t joints, cameras, rows, capacity; // what it was made for
    uint64_t bytes;                           // head included
};

// Any thread. A number that differs between two builds whose structs may differ: of the
// version, the compiler and the sizes of all that is copied.
uint64_t keyframe_build(void);

// rt. At the beginning of loop_tick; puts it on the tape when it is due.
void keyframe_loop(struct loop *l, struct tape *t, uint64_t tick, ns_t now);
// plain, keyframe_restore_loop.c. Into a loop that was made (loop_new) with an equal configuration. 0;
// -EINVAL: another build, another robot, or damaged; then *why (160 bytes) says so.
int keyframe_loop_restore(struct loop *l, const void *data, size_t size, char why[160]);
// plain. What the loop remembers, equal in one who has gone the same way: for tests. The bytes that
// keyframe_loop would write, but for at_ns. Returns how many, 0 when they do not fit.
size_t keyframe_loop_bytes(struct loop *l, uint64_t tick, void *out, size_t capacity);

// io. When it is due. cameras (n).
void keyframe_bus(struct intake *in, struct camera *const *cameras, int n, struct tape *t,
                  ns_t now);
int keyframe_bus_restore(struct intake *in, struct camera *const *cameras, int n,
                         const void *data, size_t size, char why[160]);

#endif
