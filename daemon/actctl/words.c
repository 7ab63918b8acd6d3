// words: see the header. The sentences about reasons name no joint and no stream: the
// daemon's explanation does, and is shown before them.
#include "daemon/actctl/words.h"

#include <stdio.h>
#include <string.h>

// "MODE_RUNNING" of a type called actd.v1.Mode: the values' prefix ends where that of the
// type's first value ("MODE_" before "UNSPECIFIED", "NONE", …) does; nested enums have
// none.
static size_t prefix(const ProtobufCEnumDescriptor *type)
{
    const char *first = type->values[0].name, *other;
    size_t n = 0, cut = 0;

    if (type->n_values < 2)
        return 0;
    for (other = type->values[1].name; first[n] && first[n] == other[n]; n++)
        if (first[n] == '_')
            cut = n + 1;
    return cut;
}

const char *words_enum(const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
    static char unknown[4][24];
    static unsigned at;

    if (v)
        return v->name + prefix(type);
    char *to = unknown[at++ % 4];
    snprintf(to, sizeof unknown[0], "UNKNOWN %d", value);
    return to;
}

struct sentence {
    const char *means, *next;
};

// A word with two sentences, either may be left out.
#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

static const struct sentence modes[] = {
    [1] = {"It is starting.", ""},
    [2] = {"It waits for joint states and cameras; the pose is held.",
           "It becomes READY by itself when every stream is fresh."},
    [3] = {"It may be armed; the pose is held.",
           "To drive: actctl arm. To the rest pose: actctl home."},
    [4] = {"It goes slowly to where the policy wants the arm.",
           "To end it: actctl disarm; at once: actctl stop."},
    [5] = {"The policy drives.", "To end it: actctl disarm; at once: actctl stop."},
    [6] = {"The arm rests, and goes on by itself if the cause goes away in time.",
           "Mend the cause, or actctl disarm."},
    [7] = {"It comes to rest and will not go on.", "Wait until it is STOPPED."},
    [8] = {"It has stopped and stays so.",
           "Mend the cause, then actctl reset, then actctl arm."},
    [9] = {"Emergency stop.", "When it is safe: actctl reset, then actctl arm."},
    [10] = {"It comes to rest on request, or an approach or the way home ended.",
            "Wait until it is READY."},
    [11] = {"It goes slowly to the rest pose.",
            "To end it: actctl disarm; at once: actctl stop."},
};

static const struct sentence reasons[] = {
    [1] = {"The start is not over, or streams are not yet fresh long enough.",
           "Wait; if it stays so: start the driver and the cameras."},
    [2] = {"No joint state came so far.", "Start the driver, or mend its endpoint."},
    [3] = {"The newest joint state is too old.", "See whether the driver still runs."},
    [4] = {"A camera has sent nothing so far.", "Start it, or mend its endpoint."},
    [5] = {"A camera's newest frame is too old.", "See whether the camera still sends."},
    [6] = {"No chunk of the policy covers this moment.",
           "See inference and chunk latency below."},
    [7] = {"The chunks there are were made from too old a picture.",
           "See inference and chunk latency below."},
    [8] = {"The policy's output was not a number.",
           "Check the checkpoint: actd inspect."},
    [9] = {"The arm is not where it was commanded to be.",
           "See what holds it, its power and its brakes."},
    [10] = {"The policy failed.", "See the daemon's log: journalctl -u 'actd@*'."},
    [11] = {"The loop itself was away for too long.",
            "See what keeps the machine busy: actctl doctor."},
    [12] = {"An operator asked for it.", ""},
    [13] = {"Emergency stop.", "Find out who pressed it and why."},
    [14] = {"A joint was measured outside its limits.", "Move it back inside by hand."},
    [15] = {"The last gate refused a command.", "See the daemon's log, and report it."},
    [16] = {"Joint states had a wrong form.",
            "Compare the driver's joints with the configuration."},
    [17] = {"Joint states were not numbers.", "See the driver."},
    [18] = {"Joint states jumped further than an arm can move.",
            "See encoders and cables."},
    [19] = {"The clock behind the joint states jumped.",
            "See the time of the driver's machine."},
    [20] = {"Frames of a camera do not decode.", "See its cable and its compression."},
    [21] = {"Frames of a camera were refused for their form.",
            "Compare size and format with the configuration."},
    [22] = {"A camera sends the same picture again and again.", "Start it anew."},
    [23] = {"The cameras' frames lie too far apart in time.",
            "See their rates and clocks."},
    [24] = {"An inference is overdue.",
            "See what keeps the machine busy: actctl doctor."},
    [25] = {"The policy wants a pose beyond the hard limits.",
            "Check limits, units and whether the policy is for this robot."},
    [26] = {"The loop was stuck and the output was cut.",
            "See the daemon's log, and report it."},
    [27] = {"The loop woke late too often.",
            "See what this machine lacks: actctl doctor."},
    [28] = {"The loop's work took too long too often.",
            "See what this machine lacks: actctl doctor."},
    [29] = {"Chunks came too late.", "See inference below, and actctl doctor."},
    [30] = {"Commands were made from too old joint states.", "See the driver's rate."},
    [31] = {"The approach never arrived where the policy wants the arm.",
            "Move the arm nearer to where demonstrations began."},
    [32] = {"Joint states come below 90 % of their declared rate.", "See the driver."},
    [33] = {"A camera sends below 90 % of its declared rate.",
            "See its exposure and its cable."},
};

static const char *pick(const struct sentence *all, int n, int i, int next)
{
    const char *s = NULL;

    if (i >= 0 && i < n)
        s = next ? all[i].next : all[i].means;
    return s ? s : "";
}

const char *words_mode_means(Actd__V1__Mode mode)
{
    return pick(modes, COUNT(modes), (int)mode, 0);
}

const char *words_mode_next(Actd__V1__Mode mode)
{
    return pick(modes, COUNT(modes), (int)mode, 1);
}

const char *words_reason_means(Actd__V1__Reason reason)
{
    return pick(reasons, COUNT(reasons), (int)reason, 0);
}

const char *words_reason_mend(Actd__V1__Reason reason)
{
    return pick(reasons, COUNT(reasons), (int)reason, 1);
}

bool words_follows(Actd__V1__Mode mode)
{
    return mode == ACTD__V1__MODE__MODE_RUNNING || mode == ACTD__V1__MODE__MODE_HOLD;
}

enum style words_mode_style(Actd__V1__Mode mode)
{
    switch ((int)mode) {
    case ACTD__V1__MODE__MODE_RUNNING:
    case ACTD__V1__MODE__MODE_READY:
        return GOOD;
    case ACTD__V1__MODE__MODE_HOLD:
    case ACTD__V1__MODE__MODE_STOPPING:
    case ACTD__V1__MODE__MODE_WAITING:
        return WARN;
    case ACTD__V1__MODE__MODE_STOPPED:
    case ACTD__V1__MODE__MODE_ESTOP:
        return BAD;
    default:
        return BOLD;
    }
}
