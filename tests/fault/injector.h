// injector: what can go wrong, in the words that PX4 has for it. An injection says what goes
// wrong (target), how (verb), in which way of several (variant), from which tick on, for how many
// ticks, how much, and for which joint or camera. The world asks at every message, inference and
// tick whether one is on.
//
//   off           nothing comes            wrong         well-formed, and false
//   stuck         the same for ever        slow          late, or too seldom
//   garbage       not even well-formed     delayed       whole and true, but later
//   intermittent  only some of it comes: magnitude is the part that is lost, 0 … 1
#ifndef ACTD_FAULT_INJECTOR_H
#define ACTD_FAULT_INJECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/clock.h"

enum inject_target {
    INJECT_JOINTS,  // the driver's joint states
    INJECT_CAMERA,  // `index` says which
    INJECT_POLICY,  // the brain
    INJECT_LOOP,    // the loop's thread: off/stuck = away, slow = works too long,
                    // delayed = wakes late
    INJECT_PROCESS, // stuck: the whole process is stopped (SIGSTOP)
    INJECT_BUS, // stuck: the bus thread; off, delayed, intermittent: commands on the wire
    INJECT_REQUESTS, // wrong: magnitude is a set of board_request bits, each tick
    INJECT_PLANT,    // stuck: a joint is blocked; wrong: it jumps by magnitude rad
    INJECT_COMMAND,  // wrong: memory of the loop is hit between guard and gate
    INJECT_DISK, // the black box's: off = full, garbage = EIO, slow = magnitude ms a write
};
#define INJECT_TARGETS 10

enum inject_verb {
    VERB_OK,
    VERB_OFF,
    VERB_STUCK,
    VERB_GARBAGE,
    VERB_WRONG,
    VERB_SLOW,
    VERB_DELAYED,
    VERB_INTERMITTENT,
};
#define VERBS 8

// Variants. 0 is what a plain use of the verb does.
enum joints_garbage {
    JOINTS_RANDOM, // random bytes
    JOINTS_TRUNCATED,
    JOINTS_EMPTY,  // a message of no bytes
    JOINTS_NESTED, // 4000 deep
    JOINTS_BOMB,   // 16 KiB of unknown fields
    JOINTS_FLIPS,  // random bits of a good message turned over
    JOINTS_GARBAGES,
};
enum joints_stuck {
    JOINTS_SAME,    // one message for ever
    JOINTS_ENCODER, // fresh ones, and joint `index` has the position that it had
    JOINTS_STUCKS,
};
enum joints_wrong {
    JOINTS_NAN,      // joint `index`
    JOINTS_INFINITE, // sign of magnitude
    JOINTS_HUGE,     // 1e30
    JOINTS_ONE_LESS,
    JOINTS_ONE_MORE,
    JOINTS_RENAMED,
    JOINTS_TWICE,     // one name twice, another missing
    JOINTS_PERMUTED,  // another order, values with their names: must be understood
    JOINTS_OFFSET,    // joint `index` says magnitude rad too much: one impossible jump
    JOINTS_DUPLICATE, // every message sent twice
    JOINTS_REORDERED, // every other pair swapped
    JOINTS_RESTARTED, // nothing for magnitude ms, then stamps from a new clock, once
    JOINTS_CLOCK,     // the sender's clock is magnitude ms off
    JOINTS_NO_STAMP,
    JOINTS_VELOCITY_NAN,
    JOINTS_WRONGS,
};
enum camera_garbage {
    CAMERA_RANDOM,
    CAMERA_TRUNCATED, // a JPEG cut in half: only the decoder notices
    CAMERA_FLIPS,     // a JPEG with bits turned over
    CAMERA_HUFFMAN,   // with a bad Huffman table
    CAMERA_BOMB,      // 65535 x 65535 pixels in its header
    CAMERA_EMPTY,
    CAMERA_GARBAGES,
};
enum camera_delayed {
    CAMERA_BY_MS,  // magnitude
    CAMERA_BURSTS, // all of magnitude ms come at its end
};
enum camera_wrong {
    CAMERA_SIZE,     // another size than the policy's
    CAMERA_ENCODING, // "yuv422"
    CAMERA_STRIDE,   // step shorter than a row
    CAMERA_DUPLICATE,
    CAMERA_REORDERED,
    CAMERA_CLOCK, // magnitude ms
    CAMERA_SKEW,  // stamps and frames magnitude ms late, in step
    CAMERA_WRONGS,
};
enum policy_wrong {
    POLICY_NAN, // in one value of the chunk
    POLICY_INFINITE,
    POLICY_HUGE, // every row magnitude rad: beyond the hard limits
    POLICY_ZEROS,
    POLICY_WIDTH, // a chunk for another number of joints
    POLICY_FAR,   // a step of magnitude rad, inside the hard limits
    POLICY_NO_ROWS,
    POLICY_SAME_ID, // the id of the chunk before
    POLICY_FAILS,   // policy_infer returns an error
    POLICY_WRONGS,
};
// VERB_GARBAGE on the policy is POLICY_NAN in random places; DELAYED hands the chunk over
// magnitude ms after it was done (a late result); SLOW takes magnitude times as long.

struct injection {
    enum inject_target target;
    enum inject_verb verb;
    int variant;
    int index;      // joint or camera
    uint64_t from;  // the first tick, and
    uint64_t ticks; // for how many; 0 = for ever
    double magnitude;
};

#define INJECTIONS 32

struct injector {
    int n;
    struct injection on[INJECTIONS];
    uint64_t random; // state of the generator
    uint64_t hits;   // messages, inferences, ticks that were changed
    uint64_t lost;   // of those the messages that were not sent at all
};

void injector_init(struct injector *i, uint64_t seed);
// False when INJECTIONS are there already: finished ones give way.
bool injector_add(struct injector *i, const struct injection *one, uint64_t tick);
// The first injection that is on for this target and index in tick number `tick`, or NULL.
const struct injection *injector_find(const struct injector *i, enum inject_target target,
                                      int index, uint64_t tick);
// True while none is on and none is to come.
bool injector_quiet(const struct injector *i, uint64_t tick);

uint32_t injector_random32(uint64_t *state);
double injector_random01(uint64_t *state); // [0, 1)
// Any injection that the world understands, at `tick` or up to 200 ticks later, for up to 300
// ticks. The disk is left alone.
struct injection injector_any(uint64_t *state, uint64_t tick, int joints, int cameras);

const char *inject_target_name(enum inject_target t);
const char *inject_verb_name(enum inject_verb v);

#endif
