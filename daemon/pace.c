#include "daemon/pace.h"

#include "daemon/blind.h"

void pace_init(struct pace *p, double rate_hz)
{
    *p = (struct pace){.period_ns = rate_hz > 0 ? clock_period_ns(rate_hz) : 0};
}

bool pace_add(struct pace *p, ns_t received_ns)
{
    ns_t *oldest = &p->at_ns[p->count % PACE_SAMPLES];
    ns_t span_ns = received_ns - *oldest; // of PACE_SAMPLES periods
    bool full = p->count >= PACE_SAMPLES;

    *oldest = received_ns;
    p->count++;
    if (p->period_ns == 0 || !full)
        return false;
    return !BLIND(BLIND_STREAM_RATE) &&
           span_ns > p->period_ns * PACE_SAMPLES * 100 / PACE_LEAST;
}
