// The arrays are protoc's descriptor sets as numbers (Makefile: $(BUILD)/gen/%.fds.inc), one per
// file of proto/.
#include "daemon/schema.h"

#include <string.h>

static const unsigned char joint_states[] = {
#include "foxglove/JointStates.fds.inc"
};
static const unsigned char compressed_image[] = {
#include "foxglove/CompressedImage.fds.inc"
};
static const unsigned char raw_image[] = {
#include "foxglove/RawImage.fds.inc"
};
static const unsigned char log_line[] = {
#include "foxglove/Log.fds.inc"
};
static const unsigned char joint_command[] = {
#include "actd/v1/joint_command.fds.inc"
};
static const unsigned char record[] = {
#include "actd/v1/record.fds.inc"
};

#define SCHEMA(name, set)                     \
    {                                         \
        0, name, "protobuf", set, sizeof(set) \
    }
static const struct mcap_schema schema[] = {
    SCHEMA("foxglove.JointStates", joint_states),
    SCHEMA("foxglove.CompressedImage", compressed_image),
    SCHEMA("foxglove.RawImage", raw_image),
    SCHEMA("foxglove.Log", log_line),
    SCHEMA("actd.v1.JointCommand", joint_command),
    SCHEMA("actd.v1.Tick", record),
    SCHEMA("actd.v1.Input", record),
    SCHEMA("actd.v1.Chunk", record),
    SCHEMA("actd.v1.Seat", record),
};
#define SCHEMAS ((int)(sizeof schema / sizeof *schema))

const struct mcap_schema *schema_at(int i)
{
    return i >= 0 && i < SCHEMAS ? &schema[i] : NULL;
}

const struct mcap_schema *schema_of(const char *full_name)
{
    for (int i = 0; i < SCHEMAS; i++)
        if (strcmp(schema[i].name, full_name) == 0)
            return &schema[i];
    return NULL;
}
