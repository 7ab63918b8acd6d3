// refuse: how every loader of this directory says no. One sentence that names the thing and the
// remedy goes into the caller's policy_error, a negative errno comes back. plain.
#ifndef ACTD_REFUSE_H
#define ACTD_REFUSE_H

#include "policy/policy.h"

// Writes the sentence and returns -code. err may be NULL. Names come out of files that nobody
// vouches for, so control characters are replaced by '?': a tensor's name must not be able to
// forge a log line or drive a terminal.
int refuse(struct policy_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Appends to the sentence that is already there; returns -code.
int refuse_more(struct policy_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
