// What explain's own files share.
#ifndef ACTD_EXPLAIN_IMPL_H
#define ACTD_EXPLAIN_IMPL_H

#include "daemon/explain.h"

// plain. For the reasons that name a wrong value rather than an absent stream; text stays empty
// for all others.
void explain_fault(const struct explain_source *src, const struct loop_report *now,
                   enum ladder_reason reason, int index, double value, char *text,
                   size_t size);

// plain. For JOINTS_SLOW and CAMERA_SLOW: the first stream of that kind that comes more slowly than
// declared, if there is one. explain.c.
void explain_slow(const struct explain_source *src, enum ladder_reason reason, char *text,
                  size_t size);

#endif
