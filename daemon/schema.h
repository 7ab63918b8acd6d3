// schema: what a message in a recording looks like, for whoever opens it: each is a
// google.protobuf.FileDescriptorSet with the file that has the message in it and all that this
// imports, dependencies first. protoc makes them from proto/ when actd is built; they are part of
// the binary. Constant; any thread.
#ifndef ACTD_SCHEMA_H
#define ACTD_SCHEMA_H

#include "daemon/mcap.h"

// By the full name of a message, "foxglove.JointStates". NULL = we have none of it. The id is 0:
// who writes it into a file gives it one (in a copy).
const struct mcap_schema *schema_of(const char *full_name);
// All of them, in no order that means anything; NULL beyond the last.
const struct mcap_schema *schema_at(int i);

#endif
