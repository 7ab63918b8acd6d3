// Which build a keyframe is of. The version names the commit, "-dirty" where it is none, so the
// sizes of what is copied are there for those who build between two commits. keyframe_build.c holds
// rt functions only.
#include "daemon/keyframe.h"
#include "daemon/keyframe_bus_impl.h"
#include "daemon/keyframe_loop_impl.h"

#ifndef ACTD_VERSION
#define ACTD_VERSION "unknown"
#endif

// FNV-1a.
static uint64_t mix(uint64_t hash, uint64_t byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text != 0; text++)
        hash = mix(hash, (unsigned char)*text);
    return mix(hash, 0);
}

uint64_t keyframe_build(void)
{
    static const size_t size[] = {
        sizeof(struct loop),           offsetof(struct loop, guard),
        offsetof(struct loop, report), sizeof(struct chunks),
        sizeof(struct live),           sizeof(struct guard),
        sizeof(struct faults),         sizeof(struct budget),
        sizeof(struct loop_report),    sizeof(struct command),
        sizeof(struct joint_sample),   sizeof(struct joint_history),
        sizeof(struct keyframe_bus),   sizeof(struct keyframe_camera),
    };
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    hash = mix_text(hash, ACTD_VERSION);
    hash = mix_text(hash, __VERSION__);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int shift = 0; shift < 32; shift += 8)
            hash = mix(hash, (size[i] >> shift) & 0xff);
    return hash;
}
