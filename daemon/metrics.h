// metrics: a status as Prometheus text (exposition format 0.0.4), for a scraper or a person with
// grep. Base units: seconds, hertz, radians (metres where a joint slides). Counters start with
// the process. Series that can be known beforehand are there from the first scrape on with 0, since
// a rate over a series that begins at 1 misses the first event. Class plain, pure.
//
// What is told apart by a label is bounded: a reason why the last frame was refused, say, is in the
// log, not in a label, or each sentence would be a time series of its own for ever. Words that
// become labels are listed in the manual (METRICS in actd.1), and stay.
//
// The label "instance" is the daemon's. Prometheus calls it exported_instance, since it has an
// "instance" of its own (host:port), unless the job says honor_labels.
#ifndef ACTD_METRICS_H
#define ACTD_METRICS_H

#include <stddef.h>

#include "actd/v1/status.pb-c.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
// Room for every joint, camera and cause with the longest names; what a reply over the control
// socket (256 KiB) has room for, too.
#define METRICS_MAX (248 * 1024)

// plain. Writes the text and a final NUL. Bytes without the NUL, or 0 when `size` does not
// suffice: half a text would be half the truth.
size_t metrics_write(const Actd__V1__Status *m, char *out, size_t size);

// plain. The same from a status as status_pack made it. 0 when it is none.
size_t metrics_write_packed(const unsigned char *packed, size_t n, char *out,
                            size_t size);

#endif
