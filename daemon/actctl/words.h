// words: what the numbers of the protocol mean to a person. A number that this version
// does not know, from a newer daemon, is "UNKNOWN 99" and has no sentence. plain.
#ifndef ACTD_ACTCTL_WORDS_H
#define ACTD_ACTCTL_WORDS_H

#include <stdbool.h>

#include <protobuf-c/protobuf-c.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/actctl/style.h"

// The value's name without its type's prefix: "RUNNING". The caller's until the fourth
// next call with a number that has no name.
const char *words_enum(const ProtobufCEnumDescriptor *type, int value);
#define words_mode(v)   words_enum(&actd__v1__mode__descriptor, (int)(v))
#define words_reason(v) words_enum(&actd__v1__reason__descriptor, (int)(v))
#define words_limit(v)  words_enum(&actd__v1__limit__descriptor, (int)(v))

// Sentences; "" where there is nothing to say.
const char *words_mode_means(Actd__V1__Mode mode);
const char *words_mode_next(Actd__V1__Mode mode); // what an operator does next
const char *words_reason_means(Actd__V1__Reason reason);
const char *words_reason_mend(Actd__V1__Reason reason);

// Whether the arm is where a chunk says, or rests there: elsewhere the place in it that
// is in a status means nothing.
bool words_follows(Actd__V1__Mode mode);

enum style words_mode_style(Actd__V1__Mode mode);

#endif
