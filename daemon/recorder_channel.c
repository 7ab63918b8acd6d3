// The channels of a recording and their schemas: the same ids in every file of a run.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/record_codec.h"
#include "daemon/recorder_parts.h"
#include "daemon/schema.h"

enum { NOTHING, TICK, INPUT, CHUNK, SEAT, LOG, JOINTS, COMPRESSED, RAW, COMMAND };

static const char *const schema_name[RECORDER_SCHEMAS] = {
    [TICK] = "actd.v1.Tick",
    [INPUT] = "actd.v1.Input",
    [CHUNK] = "actd.v1.Chunk",
    [SEAT] = "actd.v1.Seat",
    [LOG] = "foxglove.Log",
    [JOINTS] = "foxglove.JointStates",
    [COMPRESSED] = "foxglove.CompressedImage",
    [RAW] = "foxglove.RawImage",
    [COMMAND] = "actd.v1.JointCommand",
};

#define FORMS 4 // of a camera's messages

static const struct {
    int topic, schema;
    const char *name;
} fixed[] = {
    {TOPIC_TICK, TICK, "/tick"},
    {TOPIC_INPUT, INPUT, "/input"},
    {TOPIC_CHUNK, CHUNK, "/policy/chunk"},
    {TOPIC_SEAT, SEAT, "/policy/seat"},
    {TOPIC_EVENT, LOG, "/events"},
    {TOPIC_COMMAND, COMMAND, "/command"},
    {TOPIC_KEYFRAME, NOTHING, "/keyframe"},
    {TOPIC_JOINTS, JOINTS, "/joint_states"},
    {TOPIC_JOINTS_UNDECODABLE, NOTHING, "/undecodable/joint_states"},
    {TOPIC_JOINTS_PARTS, NOTHING, "/parts/joint_states"},
};

static bool is_parts(int topic)
{
    return topic == TOPIC_JOINTS_PARTS ||
           (topic >= TOPIC_CAMERAS &&
            topic == recorder_topic_camera((topic - TOPIC_CAMERAS) / FORMS, TAPE_PARTS));
}

static void set(struct recorder_channels *c, int topic, int schema, const char *name)
{
    c->channel[topic] = (struct mcap_channel){
        .id = (uint16_t)topic,
        .schema = (uint16_t)schema,
        .topic = name,
        .encoding = topic == TOPIC_KEYFRAME ? "actd-keyframe"
                    : is_parts(topic)       ? RECORD_PART_ENCODING
                    : schema == NOTHING     ? ""
                                            : "protobuf",
    };
}

static int set_camera(struct recorder_channels *c, int camera, enum tape_form form,
                      const char *name)
{
    int topic = recorder_topic_camera(camera, form);

    if (asprintf(&c->topic[topic], "%s%s%s",
                 form == TAPE_UNDECODABLE ? "/undecodable/"
                 : form == TAPE_PARTS     ? "/parts/"
                                          : "/camera/",
                 name, form == TAPE_RAW ? "/raw" : "") < 0) {
        c->topic[topic] = NULL;
        return -ENOMEM;
    }
    set(c, topic,
        form == TAPE_RAW          ? RAW
        : form == TAPE_COMPRESSED ? COMPRESSED
                                  : NOTHING,
        c->topic[topic]);
    return 0;
}

int recorder_topic_camera(int camera, enum tape_form form)
{
    return TOPIC_CAMERAS + FORMS * camera +
           (form == TAPE_COMPRESSED ? 0
            : form == TAPE_RAW      ? 1
            : form == TAPE_PARTS    ? 2
                                    : 3);
}

int recorder_channels_init(struct recorder_channels *c, const struct recorder_facts *f)
{
    int rc = 0;

    for (uint16_t i = 1; i < RECORDER_SCHEMAS; i++) {
        const struct mcap_schema *s = schema_of(schema_name[i]);

        if (s == NULL)
            return -ENOENT;
        c->schema[i] = *s;
        c->schema[i].id = i;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        set(c, fixed[i].topic, fixed[i].schema, fixed[i].name);
    for (int i = 0; rc == 0 && i < f->cameras; i++) {
        rc = set_camera(c, i, TAPE_COMPRESSED, f->camera[i]);
        rc = rc ? rc : set_camera(c, i, TAPE_RAW, f->camera[i]);
        rc = rc ? rc : set_camera(c, i, TAPE_UNDECODABLE, f->camera[i]);
        rc = rc ? rc : set_camera(c, i, TAPE_PARTS, f->camera[i]);
    }
    return rc;
}

void recorder_channels_free(struct recorder_channels *c)
{
    for (int i = 0; i < RECORDER_TOPICS; i++)
        free(c->topic[i]);
}
