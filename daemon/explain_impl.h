// What explain's own files share.
#ifndef ACTD_EXPLAIN_IMPL_H
#define ACTD_EXPLAIN_IMPL_H

#include "daemon/explain.h"

// plain. For the reasons that name a wrong value rather than an absent stream; text stays empty
// for all others.
void explain_fault(const struct explain_source *src, const struct loop_report *now,
                   enum ladder_reason reason, int index, double value, char *text,
                   size_t size);

// plain. The first stream that comes more slowly than declared. explain.c.
bool explain_slow(const struct explain_source *src, char *text, size_t size);

#endif
