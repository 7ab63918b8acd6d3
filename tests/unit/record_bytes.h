// What Python's protobuf makes of one message of each kind, and the same as structs: a twin of
// record_codec that shares nothing with it but proto/actd/v1/record.proto.
#ifndef TEST_RECORD_BYTES_H
#define TEST_RECORD_BYTES_H

#include "daemon/record_codec.h"

// clang-format off
__attribute__((unused)) static const char bytes_tick[] =
    "\x08\x07\x10\xa8\xe8\xc8\xe9\x97\x07\x18\x09\x20\x01\x28\x12\x30\x14\x38\xac\x02\x40\x01"
    "\x48\x02\x50\x22\x58\x01\x61\x00\x00\x00\x00\x00\x00\xf8\x3f\x68\x01\x72\x0d\x08\xc8\x01"
    "\x10\x01\x18\x01\x20\x02\x28\x03\x30\x01\x72\x00\x78\x04\x80\x01\x01\x88\x01\x21\x90\x01"
    "\x03\x98\x01\x06\xa0\x01\x01\xa8\x01\x04\xb0\x01\x01\xb8\x01\x0b\xc0\x01\x01\xc0\x02\x05"
    "\xc8\x02\x09\xd0\x02\x02\xd9\x02\x00\x00\x00\x00\x00\x00\xd0\xbf\xe1\x02\x00\x00\x00\x00"
    "\x00\x00\x00\x80\xe9\x02\x02\x00\x00\x00\x00\x00\x00\x00\xf1\x02\x03\x00\x00\x00\x00\x00"
    "\x00\x00\xf8\x02\x01\x80\x03\x01\x88\x03\x01\x90\x03\x08\x98\x03\x0c\xa0\x03\x03\xa8\x03"
    "\x0d\xb0\x03\x0e\xb9\x03\x00\x00\x00\x00\x00\x00\x04\x40\xc1\x03\x00\x00\x00\x00\x00\x00"
    "\x1e\x40\xc8\x03\x02\xd0\x03\x99\x01\xe2\x03\x10\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00"
    "\x00\x00\x00\x00\x00\x40\xea\x03\x10\x00\x00\x00\x00\x00\x00\x08\x40\x00\x00\x00\x00\x00"
    "\x00\x10\x40\xf2\x03\x10\x00\x00\x00\x00\x00\x00\x14\x40\x00\x00\x00\x00\x00\x00\x18\x40"
    "\xfa\x03\x10\x00\x00\x00\x00\x00\x00\x1c\x40\x00\x00\x00\x00\x00\x00\x20\x40\x82\x04\x10"
    "\x00\x00\x00\x00\x00\x00\x22\x40\x00\x00\x00\x00\x00\x00\x24\x40\x8a\x04\x10\x00\x00\x00"
    "\x00\x00\x00\x26\x40\x00\x00\x00\x00\x00\x00\x28\x40\x92\x04\x10\x00\x00\x00\x00\x00\x00"
    "\x2a\x40\x00\x00\x00\x00\x00\x00\x2c\x40\x9a\x04\x10\x00\x00\x00\x00\x00\x00\x2e\x40\x00"
    "\x00\x00\x00\x00\x00\x30\x40\xa2\x04\x02\x00\x04";
__attribute__((unused)) static const char bytes_input[] =
    "\x08\x01\x10\xd0\x0f\x18\x03\x20\x02\x28\x01\x30\x04\x38\x09\x40\x05\x48\x0b\x50\x0d\x58"
    "\x08\x60\x01\x68\x03\x70\x80\x80\xd0\xe2\xc6\xbf\xce\x97\x2f\x78\x01\x81\x01\x88\x77"
    "\x66\x55\x44\x33\x22\x11";
__attribute__((unused)) static const char bytes_chunk[] =
    "\x08\x01\x10\x02\x18\x03\x20\x08\x28\x0a\x30\x0c\x38\x0e\x40\x02\x48\x01\x52\x08\x00\x00"
    "\x00\x3f\x00\x00\x00\xc0\x58\x10\x60\x09\x6a\x02\x00\x14\x72\x02\x16\x00";
__attribute__((unused)) static const char bytes_seat[] =
    "\x08\x01\x12\x01\x61\x1a\x02\x2f\x64\x22\x01\x65\x2a\x01\x63\x32\x01\x77\x3a\x01\x73\x42"
    "\x05\x78\x3a\x20\x31\x0a\x48\x04\x50\x03";
// Its message comes last, where Python has it in the order of the numbers.
__attribute__((unused)) static const char bytes_event[] =
    "\x0a\x08\x08\x80\xe2\xcf\xaa\x06\x10\x05\x10\x03\x22\x05\x66\x61\x75\x6c\x74\x1a\x03\x68\x6f\x74";
// clang-format on

__attribute__((unused)) static void tick_known(struct tick_record *r)
{
    *r = (struct tick_record){
        .in = {.tick = 7,
               .now_ns = 123456789012,
               .lateness_ns = -5,
               .last_work_ns = -1,
               .made_ns = 9,
               .reported_ns = 10,
               .joint_sample = 300,
               .joint_sample_new = true,
               .joints_refused_in_a_row = 2,
               .joints_refused_for = 17,
               .joints_refused_joint = -1,
               .joints_refused_value = 1.5,
               .joints_slow = true,
               .camera = {{100, -1, 1, 2, 3, true}},
               .chunks_before = 4,
               .chunks_taken = 1,
               .requests = 33,
               .stalls = 3,
               .policy_failures = 6,
               .inferring = true,
               .starved = 2,
               .started = true,
               .lost_command = 11,
               .room = true},
        .mode = 5,
        .reason = 9,
        .culprit = 1,
        .culprit_value = -0.25,
        .conditions = UINT64_C(1) << 63,
        .latched = 2,
        .active = 3,
        .degraded = true,
        .wants_inference = true,
        .published = true,
        .gate = 4,
        .sequence = 12,
        .target_rc = -2,
        .chunk_id = 13,
        .generation = 14,
        .chunk_row = 2.5,
        .chunk_remaining = 7.5,
        .chunks_blended = 2,
        .margin_ns = -77,
        .joints = 2,
        .cameras = 2,
        .joint = {{1, 3, 5, 7, 9, 11, 13, 15, 0}, {2, 4, 6, 8, 10, 12, 14, 16, 4}},
    };
}

__attribute__((unused)) static const struct tape_input input_known = {
    .number = 1,
    .at_ns = 1000,
    .kind = TAPE_WALL_SET,
    .stream = 2,
    .armed = true,
    .outcome = TAPE_NONE,
    .verdict = 9,
    .form = TAPE_RAW,
    .stamp_wall_ns = 1700000000000000000,
    .joint_sample = 5,
    .capture_ns = -6,
    .by_ns = -7,
    .bytes = 8,
    .kept = true,
    .more = true,
    .check = 0x1122334455667788,
};

__attribute__((unused)) static const float chunk_row_known[2] = {0.5f, -2};
__attribute__((unused)) static const struct tape_chunk chunk_known = {
    .number = 1,
    .id = 2,
    .generation = 3,
    .rows = 2,
    .joints = 1,
    .anchor_ns = 4,
    .oldest_ns = 5,
    .ready_ns = 6,
    .step_ns = 7,
    .began_ns = 8,
    .joint_sample = 9,
    .frame_ns = {0, 10},
    .capture_ns = {11, 0},
};

__attribute__((unused)) static const struct tape_seat seat_known = {
    .generation = 1,
    .threads = 3,
    .since_ns = 2,
    .name = "a",
    .directory = "/d",
    .digest = "e",
    .config_sha256 = "c",
    .weights_sha256 = "w",
    .statistics_sha256 = "s",
};

__attribute__((unused)) static const struct tape_event event_known = {TAPE_LEVEL_WARNING,
                                                                      "fault"};

#endif
