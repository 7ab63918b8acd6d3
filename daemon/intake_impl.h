// What intake's own files share: what it remembers from one message to the next. intake.c judges
// by it; keyframe_bus.c copies it, keyframe_restore_bus.c puts it back. Nobody else includes this.
#ifndef ACTD_INTAKE_IMPL_H
#define ACTD_INTAKE_IMPL_H

#include "daemon/intake.h"
#include "daemon/pace.h"

struct intake {
    struct intake_config cfg;
    struct board *board;
    struct codec *codec;
    struct codec_stamp stamp;
    struct pace pace;
    struct joint_history history;
    uint64_t published; // of the history
    uint32_t in_a_row;  // refused
    bool alone;         // the last one was accepted after one refused for a jump
    struct joint_sample elsewhere; // the last one refused for a jump
    int agreed;                    // that many in a row agree on it
    bool armed;          // board->armed, as it was when this message was looked at
    struct slot why;     // of the last refusal, char[CODEC_WHY_MAX]
    _Atomic int verdict; // enum codec_verdict
};

#endif
