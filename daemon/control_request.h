// control_request: the bytes of an actd.v1.ControlRequest into a struct, or a refusal.
// Whoever can connect can send anything, so this is decoded by a decoder of its own that
// allocates nothing, looks at each byte once and knows nothing that the message does not
// have: with protobuf-c 4096 bytes of unknown fields become 2000 allocations, and a
// string ends at the first NUL whatever follows it. Tests hold it against protobuf-c:
// whatever this accepts, protobuf-c reads the same. Pure; any thread class.
//
// Refused as a whole, nothing of it done: unknown fields (a flag that this version does
// not know may be what makes the rest harmless), fields that the verb does not have, a
// field twice, names that could leave the directory, text that is not UTF-8 or has
// control characters.
#ifndef ACTD_CONTROL_REQUEST_H
#define ACTD_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/config.h"

#define CONTROL_REQUEST_MAX 4096 // bytes of a request
#define CONTROL_TEXT        1024 // bytes of an instruction or a mark, with its NUL

struct control_request {
    uint64_t id;
    Actd__V1__Verb verb;
    char name[CONFIG_NAME];
    unsigned allow; // bit i: control_allow[i]
    bool force;
    char text[CONTROL_TEXT];
};

// What a swap may be allowed to differ in, NULL-terminated.
extern const char *const control_allow[];

// 0, or -EINVAL with a sentence in *why that repeats nothing of the message. out->id is
// the request's also when the rest is refused, 0 where it has none.
int control_request_parse(struct control_request *out, const uint8_t *data, size_t size,
                          const char **why);

// Could a request bear this name? Printable ASCII, no '/', 1 to 63 bytes.
bool control_name_fits(const char *name);
bool control_acts(Actd__V1__Verb verb);  // needs ACCESS_ACT
bool control_stops(Actd__V1__Verb verb); // brings the arm to rest: never too often
const char *control_verb_name(Actd__V1__Verb verb); // "ARM"; "?" for none

#endif
