// What writing and reading of recorded messages share: the fields that a struct and its message
// call by the same name and hold as the same type. One list serves both ways, so that no field
// can be written and forgotten at reading.
#ifndef ACTD_RECORD_CODEC_IMPL_H
#define ACTD_RECORD_CODEC_IMPL_H

#include "daemon/record_codec.h"

#define RECORD_PART_MORE  1
#define RECORD_PART_FIRST 2

// clang-format off
#define RECORD_TICK_INPUTS(X)                                                                 \
    X(tick) X(now_ns) X(lateness_ns) X(last_work_ns) X(made_ns) X(reported_ns)                \
    X(joint_sample) X(joint_sample_new) X(joints_refused_in_a_row) X(joints_refused_for)      \
    X(joints_refused_joint) X(joints_refused_value) X(joints_slow) X(chunks_before)           \
    X(chunks_taken) X(requests) X(stalls) X(policy_failures) X(inferring) X(starved)          \
    X(started) X(lost_command) X(room)

#define RECORD_TICK_CAMERA(X)                                                                 \
    X(received_ns) X(changed_ns) X(corrupt_in_a_row) X(refused_in_a_row) X(same_in_a_row)     \
    X(slow)

#define RECORD_TICK_OUTCOME(X)                                                                \
    X(culprit) X(culprit_value) X(conditions) X(latched) X(active) X(degraded)                \
    X(wants_inference) X(published) X(gate) X(sequence) X(target_rc) X(chunk_id)              \
    X(generation) X(chunk_row) X(chunk_remaining) X(margin_ns)

// Of message, of struct tick_joint. The targets are left out where there are none.
#define RECORD_TICK_COLUMNS(X)                                                                \
    X(measured, measured) X(measured_velocity, measured_vel) X(wanted, wanted)                \
    X(commanded, commanded) X(commanded_velocity, commanded_vel) X(seam, seam)
#define RECORD_TICK_TARGETS(X) X(target, target) X(target_velocity, target_vel)

#define RECORD_INPUT(X)                                                                       \
    X(number) X(at_ns) X(armed) X(joint_sample) X(capture_ns) X(by_ns) X(bytes) X(kept)       \
    X(stamp_wall_ns) X(more) X(check)

#define RECORD_CHUNK(X)                                                                       \
    X(number) X(id) X(generation) X(anchor_ns) X(oldest_ns) X(ready_ns) X(step_ns)            \
    X(began_ns) X(joint_sample)

#define RECORD_SEAT_TEXTS(X)                                                                  \
    X(name) X(directory) X(digest) X(config_sha256) X(weights_sha256) X(statistics_sha256)
// clang-format on

#endif
