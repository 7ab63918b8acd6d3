// json: a message of the protocol as JSON, by its own description, so that a field that
// is added is never forgotten. Keys are the fields' names, with the unit added where the
// name has none; every field is there, a message that was not sent is null; enums are
// names without their type's prefix; NaN and infinity, which JSON lacks, are null; times
// are seconds since 1970. plain.
#ifndef ACTD_ACTCTL_JSON_H
#define ACTD_ACTCTL_JSON_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

json_t *
json_message(const ProtobufCMessage *m); // the caller's reference; NULL without memory
json_t *json_text(const char *s);        // whatever bytes it has
json_t *json_number(double v);
// One line, ASCII only, and drops the reference. A NULL prints null.
void json_put(FILE *f, json_t *j);

#endif
