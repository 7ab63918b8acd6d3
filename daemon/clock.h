// clock: time as its own type. Everything inside actd is CLOCK_MONOTONIC in nanoseconds; wall
// clock time exists only in message stamps and is converted once, in codec. A jump of the wall
// clock therefore changes nothing but labels.
#ifndef ACTD_CLOCK_H
#define ACTD_CLOCK_H

#include <stdint.h>

typedef int64_t ns_t; // CLOCK_MONOTONIC unless the name says _wall_ns

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)

// Now. Any thread class (vDSO, no system call).
ns_t clock_now_ns(void);

// Now, CLOCK_REALTIME, for stamps only. Any thread class.
ns_t clock_wall_ns(void);

// Sleeps until the absolute time, through signals. rt. 0 or -errno (clock_nanosleep returns
// its error, it does not set errno).
int clock_sleep_until(ns_t when_ns);

// Nominal period of a rate, rounded to the nearest nanosecond. rate_hz > 0.
ns_t clock_period_ns(double rate_hz);

#endif
