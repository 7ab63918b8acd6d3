// blind: a test of the tests. Built with ACTD_BLIND (tests/fault only) any one detector can be
// switched off, and the scenario that it guards against must then fail. In every other build
// BLIND is the constant 0 and nothing of this is in the program.
#ifndef ACTD_BLIND_H
#define ACTD_BLIND_H

#include <stdint.h>

enum blind_detector {
    // intake, camera: what comes in
    BLIND_JOINTS_FORM,
    BLIND_JOINTS_FINITE,
    BLIND_JOINTS_DUPLICATE,
    BLIND_JOINTS_ORDER,
    BLIND_JOINTS_CLOCK,
    BLIND_JOINTS_JUMP,
    BLIND_CAMERA_FORM,
    BLIND_CAMERA_ORDER,
    BLIND_CAMERA_CLOCK,
    BLIND_CAMERA_CONTENT,
    BLIND_CAMERA_DECODE,
    BLIND_STREAM_RATE,
    // infer, chunks: what is made of it
    BLIND_SKEW,
    BLIND_CHUNK_FINITE,
    BLIND_CHUNK_SHAPE,
    BLIND_CHUNK_ORDER,
    BLIND_CHUNK_AGE,
    BLIND_CHUNK_END,
    BLIND_CHUNK_RANGE,
    // loop: what is true in a tick
    BLIND_JOINTS_AGE,
    BLIND_JOINTS_REFUSED,
    BLIND_CAMERA_AGE,
    BLIND_CAMERA_CORRUPT,
    BLIND_CAMERA_FROZEN,
    BLIND_FOLLOWING,
    BLIND_LIMITS_MEASURED,
    BLIND_POLICY,
    BLIND_TARGET,
    BLIND_TICK_GAP,
    BLIND_STALLS,
    BLIND_BUDGETS,
    BLIND_HOLD_EXPIRES,
    BLIND_REQUESTS,
    BLIND_LATCH,
    BLIND_GUARD, // the limits of a command: scenario.c takes them away
    BLIND_GATE,
    // bus, monitor: what goes out
    BLIND_OUTBOX_TTL,
    BLIND_OUTBOX_CUT,
    BLIND_OUTBOX_NEWEST,
    BLIND_MONITOR,
    // the process
    BLIND_LOCK,
    BLIND_WEIGHTS,
    BLIND_CONFIG,
    BLIND_DISK,
    BLIND_WALL, // the local wall clock was set
    // added since, at the end: process.py knows the numbers
    BLIND_RESET,       // what is latched waits for one
    BLIND_BLACKBOX,    // a stop leaves evidence
    BLIND_JOINTS_NAMES // a value belongs to the joint that its name says
};

#ifdef ACTD_BLIND
extern uint64_t blind_mask; // bit per detector; blind.c sets it from $ACTD_BLIND
#define BLIND(d) ((blind_mask >> (d)) & 1)
#else
#define BLIND(d) 0
#endif

#endif
