// How a sender's wall clock is mapped to ours. A message is never early: the smallest of
// the differences between receipt and stamp belongs to the quickest message, and what
// another one shows above it is that message's own delay, or its sender's clock gone
// back; nobody can tell the two apart. So:
//
//   armed      what looks late is late. The offset follows a quicker message at once and
//              otherwise rises by 1/FORGET of the time; but one that is CODEC_STEP_MS or
//              more ahead must be followed by another, or a single wrong stamp would make
//              all good ones after it look old. Beyond CODEC_JUMP_MS nothing is believed,
//              for ever.
//   disarmed   nothing moves, so the sender's clock may be learned: the smallest
//              difference in this second and the one before counts. A clock further off
//              than that, or gone back, is taken over when AGREE messages in a row show
//              the same one.
//
// Queued messages must not pass for a new clock: after a pause they come in a burst, each
// with less delay than the one before it. Messages agree if their differences lie within
// CODEC_STEP_MS and if as much time has passed by our clock as by theirs, to a quarter.
// For the same reason a pause by itself forgets nothing: the first message after it is
// held against what was known before.
//
// One jump of a sender's clock is no riddle: when the local wall clock was just set by as
// much, the sender is on this machine.
#include <string.h>

#include "daemon/codec.h"

#define STEP_NS (CODEC_STEP_MS * NS_PER_MS)
#define JUMP_NS (CODEC_JUMP_MS * NS_PER_MS)
// The kept minimum rises by 1/2000 of the time that passes: 500 ppm, as fast as the
// kernel slews a clock, five times what a poor crystal drifts. At 100 Hz it forgets 5 us
// a message.
#define FORGET 2000
#define AGREE  3
// A bucket of the sliding minimum: at least so long and so many, else after a pause one
// late message would be the minimum of all there are.
#define BUCKET_NS    NS_PER_S
#define BUCKET_LEAST 3
#define SET_NS       (5 * NS_PER_S) // that a sender has to follow a clock that was set

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

static void begin(struct codec_stamp *s, int64_t offset_ns, ns_t received_ns)
{
    codec_stamp_reset(s);
    s->offset_ns = s->low.now_ns = s->low.before_ns = offset_ns;
    s->low.since_ns = s->last_ns = received_ns;
}

static enum codec_time judge(const struct codec_stamp *s, int64_t stamp_wall_ns,
                             ns_t received_ns)
{
    int64_t jump = received_ns - stamp_wall_ns - s->offset_ns;

    // A frozen sender repeats one stamp; however long it does, it never becomes fresh
    // again.
    if (stamp_wall_ns == s->stamp_wall_ns)
        return CODEC_TIME_SAME;
    if (jump > JUMP_NS || jump < -JUMP_NS)
        return CODEC_TIME_JUMP;
    if (stamp_wall_ns < s->stamp_wall_ns)
        return CODEC_TIME_BACK;
    // Ahead: the offset follows, and the next one is on time again. Behind: it stays
    // behind, and only the first is a step.
    if (jump <= -STEP_NS || (jump >= STEP_NS && !s->late))
        return CODEC_TIME_STEP;
    return CODEC_TIME_OK;
}

// To a quarter of either.
static bool about_equal(int64_t a, int64_t b)
{
    return a >= b - b / 4 && b >= a - a / 4;
}

// Of a message that is not accepted: do the last ones agree on another clock?
static bool another_clock(struct codec_stamp *s, int64_t stamp_wall_ns, ns_t received_ns)
{
    int64_t seen = received_ns - stamp_wall_ns;
    int64_t least = seen < s->other.least_ns ? seen : s->other.least_ns;
    int64_t most = seen > s->other.most_ns ? seen : s->other.most_ns;

    if (s->other.count > 0 && stamp_wall_ns == s->other.last_wall_ns)
        return false;
    if (s->other.count == 0 || stamp_wall_ns < s->other.last_wall_ns ||
        most - least > STEP_NS) {
        s->other.count = 0;
        s->other.first_ns = received_ns;
        s->other.first_wall_ns = stamp_wall_ns;
        least = most = seen;
    }
    s->other.count++;
    s->other.least_ns = least;
    s->other.most_ns = most;
    s->other.last_wall_ns = stamp_wall_ns;
    return s->other.count >= AGREE && about_equal(received_ns - s->other.first_ns,
                                                  stamp_wall_ns - s->other.first_wall_ns);
}

static void follow_slowly(struct codec_stamp *s, int64_t seen, ns_t received_ns)
{
    s->offset_ns += (received_ns - s->last_ns) / FORGET;
    if (seen < s->offset_ns)
        s->offset_ns = seen;
    s->low.now_ns = s->low.before_ns = s->offset_ns; // to go on with when disarmed
    s->low.since_ns = received_ns;
    s->low.count = 0;
}

static void follow_quickly(struct codec_stamp *s, int64_t seen, ns_t received_ns)
{
    if (received_ns - s->low.since_ns >= BUCKET_NS && s->low.count >= BUCKET_LEAST) {
        s->low.before_ns = s->low.now_ns;
        s->low.now_ns = seen;
        s->low.since_ns = received_ns;
        s->low.count = 0;
    }
    s->low.count++;
    if (seen < s->low.now_ns)
        s->low.now_ns = seen;
    s->offset_ns = s->low.now_ns < s->low.before_ns ? s->low.now_ns : s->low.before_ns;
}

void codec_stamp_wall_set(struct codec_stamp *s, int64_t by_ns, ns_t now)
{
    if (now > s->set.until_ns)
        s->set.by_ns = 0;
    s->set.by_ns += by_ns;
    s->set.until_ns = now + SET_NS;
}

static int64_t size(int64_t x)
{
    return x < 0 ? -x : x;
}

// The first message that far ahead is refused, the second that agrees with it is not.
static bool ahead_alone(struct codec_stamp *s, int64_t stamp_wall_ns, int64_t seen)
{
    bool again = s->ahead && stamp_wall_ns != s->ahead_wall_ns &&
                 size(seen - s->ahead_ns) < STEP_NS;

    s->ahead = seen - s->offset_ns <= -STEP_NS;
    s->ahead_ns = seen;
    s->ahead_wall_ns = stamp_wall_ns;
    return s->ahead && !again;
}

// Shifts all that is known of the sender's clock, if the message then fits better, and
// well.
static void follow_wall(struct codec_stamp *s, int64_t stamp_wall_ns, ns_t received_ns)
{
    int64_t by_ns = s->set.by_ns;
    int64_t jump = received_ns - stamp_wall_ns - s->offset_ns;

    if (by_ns == 0 || received_ns > s->set.until_ns || stamp_wall_ns == s->stamp_wall_ns)
        return;
    if (size(jump + by_ns) >= STEP_NS || size(jump + by_ns) >= size(jump) ||
        stamp_wall_ns - by_ns <= s->stamp_wall_ns)
        return;
    s->offset_ns -= by_ns;
    s->low.now_ns -= by_ns;
    s->low.before_ns -= by_ns;
    s->stamp_wall_ns += by_ns;
    s->set.by_ns = 0;
}

enum codec_time codec_stamp_map(struct codec_stamp *s, int64_t stamp_wall_ns,
                                ns_t received_ns, bool learn, ns_t *capture_ns)
{
    enum codec_time time;
    int64_t seen;

    *capture_ns = received_ns;
    if (stamp_wall_ns == 0)
        return CODEC_TIME_OK;
    if (stamp_wall_ns < 0 || stamp_wall_ns > INT64_MAX / 2)
        return CODEC_TIME_JUMP;
    seen = received_ns - stamp_wall_ns;
    if (s->samples == 0)
        begin(s, seen, received_ns);
    follow_wall(s, stamp_wall_ns, received_ns);
    time = judge(s, stamp_wall_ns, received_ns);
    if (time == CODEC_TIME_SAME)
        return time;
    if (time > CODEC_TIME_SAME) {
        s->ahead = false;
        if (!another_clock(s, stamp_wall_ns, received_ns) || !learn)
            return time;
        begin(s, s->other.least_ns, received_ns);
        time = CODEC_TIME_OK;
    }
    if (time == CODEC_TIME_STEP && ahead_alone(s, stamp_wall_ns, seen))
        return CODEC_TIME_JUMP;
    s->ahead = false;
    s->other.count = 0;
    s->late = seen - s->offset_ns >= STEP_NS;
    if (learn)
        follow_quickly(s, seen, received_ns);
    else
        follow_slowly(s, seen, received_ns);
    s->samples++;
    s->last_ns = received_ns;
    s->stamp_wall_ns = stamp_wall_ns;
    *capture_ns = stamp_wall_ns + s->offset_ns;
    return time;
}
