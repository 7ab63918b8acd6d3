// How a sender's wall clock is mapped to ours. A message is never early: the smallest of
// the differences between receipt and stamp belongs to the quickest message, and what
// another one shows above it is that message's own delay.
#include <errno.h>
#include <string.h>

#include "daemon/codec.h"

#define JUMP_NS   (CODEC_JUMP_MS * NS_PER_MS)
#define SILENT_NS (2 * NS_PER_S)
// The kept minimum rises by 1/2000 of the time that passes: 500 ppm, as fast as the
// kernel slews a clock, five times what a poor crystal drifts. At 100 Hz it forgets 5 us
// a message.
#define FORGET 2000

void codec_stamp_reset(struct codec_stamp *s)
{
    memset(s, 0, sizeof *s);
}

enum codec_verdict codec_wall(int64_t seconds, int32_t nanos, int64_t *wall_ns)
{
    // Half of what 64 bits hold, so that the difference of any two stamps fits as well.
    if (seconds < 0 || seconds >= INT64_MAX / 2 / NS_PER_S)
        return CODEC_BAD_STAMP;
    if (nanos < 0 || nanos >= NS_PER_S)
        return CODEC_BAD_STAMP;
    *wall_ns = seconds * NS_PER_S + nanos;
    return CODEC_OK;
}

// Refuses a jump and what is older than the last; follows the minimum.
static int follow(struct codec_stamp *s, int64_t stamp_wall_ns, ns_t received_ns)
{
    int64_t seen = received_ns - stamp_wall_ns;
    int64_t jump = seen - s->offset_ns;

    if (jump > JUMP_NS || jump < -JUMP_NS || stamp_wall_ns < s->stamp_wall_ns)
        return -ERANGE;
    s->offset_ns += (received_ns - s->last_ns) / FORGET;
    if (seen < s->offset_ns)
        s->offset_ns = seen;
    return 0;
}

int codec_stamp_map(struct codec_stamp *s, int64_t stamp_wall_ns, ns_t received_ns,
                    ns_t *capture_ns)
{
    if (stamp_wall_ns == 0) {
        *capture_ns = received_ns;
        return 0;
    }
    if (stamp_wall_ns < 0 || stamp_wall_ns > INT64_MAX / 2)
        return -ERANGE;
    // A frozen sender repeats one stamp; however long it does, it never becomes fresh
    // again.
    if (stamp_wall_ns == s->stamp_wall_ns)
        return -EALREADY;
    if (s->samples == 0 || received_ns - s->last_ns > SILENT_NS) {
        s->samples = 0;
        s->offset_ns = received_ns - stamp_wall_ns;
    } else if (follow(s, stamp_wall_ns, received_ns) != 0) {
        return -ERANGE;
    }
    s->samples++;
    s->last_ns = received_ns;
    s->stamp_wall_ns = stamp_wall_ns;
    *capture_ns = stamp_wall_ns + s->offset_ns;
    return 0;
}
