// What a replay says at its end, to people and to programs. All plain.
#ifndef ACTD_REPLAY_PRINT_H
#define ACTD_REPLAY_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/replay.h"

bool replay_equal(const struct replay_result *r); // nothing differs
// What was compared, what was not and why, what differs first.
void replay_print(struct logbook *book, const struct replay_options *opt,
                  const struct replay_result *r, FILE *f);
json_t *replay_json(struct logbook *book,
                    const struct replay_result *r); // NULL: no memory

#endif
