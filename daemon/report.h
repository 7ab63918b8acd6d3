// report: a run on one page: a self-contained HTML file with inline SVG, for a colleague who was not
// there. Joints (measured, target, commanded, limits, chunk boundaries), lateness and latency,
// ages, the ladder over time, seams, drops, events, pictures of the cameras. All plain.
#ifndef ACTD_REPORT_H
#define ACTD_REPORT_H

#include "daemon/logbook.h"
#include "daemon/replay.h"

// Writes path (under another name until it is whole). verdict: of a replay, shown at the top; NULL = none was made.
// 0 or -errno with err.
int report_write(struct logbook *book, const char *path,
                 const struct replay_result *verdict, struct mcap_error *err);

#endif
