#include "daemon/clock.h"

#include <errno.h>
#include <time.h>

static ns_t read_clock(clockid_t id)
{
    struct timespec t;

    if (clock_gettime(id, &t) != 0) // can not fail for these two clocks
        return 0;
    return (ns_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

ns_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

ns_t clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int clock_sleep_until(ns_t when_ns)
{
    struct timespec t = {.tv_sec = when_ns / NS_PER_S, .tv_nsec = when_ns % NS_PER_S};
    int rc;

    if (when_ns <= 0)
        return 0;
    do
        rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    while (rc == EINTR);
    return -rc;
}

ns_t clock_period_ns(double rate_hz)
{
    return (ns_t)((double)NS_PER_S / rate_hz + 0.5);
}
