// chunks: overlapping chunks of actions become one target per tick.
//
// A chunk is the rows of one inference. Row k is meant for anchor + k * step and is good
// for one step, so a chunk covers [anchor, anchor + rows * step): between rows it is
// interpolated, during the last step the last row is held, after that it is never used
// again. Which rows of a late chunk are skipped follows from the clock alone; no latency
// estimate is involved. Rows beyond the horizon (cfg.rows) are not even looked at.
//
// Every interpolation passes through the rows. hold is still in between. linear has one
// slope per step, so the velocity steps at each row, to 0 at the last one. cubic
// (Catmull-Rom, one-sided at row 0) is C1 over the whole chunk: it comes to rest in the
// last row.
//
// All blend modes are one fold over the live chunks that cover `now`, oldest first:
//
//   value = chunk_0(now);   value += s_j * (chunk_j(now) - value)   for j = 1, 2, …
//
//   replace, latest_only        s = 1
//   crossfade                   s = smoothstep((now - shown_j) / fade), fade cut to what
//                               the chunk before still covers
//   weighted_average            s = 0.7 (LeRobot async_inference; the old get 1 - s)
//   average                     s = 0.5 (as well)
//   conservative                s = 0.3 (as well)
//   ensemble                    s = w_i / (w_0 + … + w_i), w_i = exp(-m i), i counts the
//                               covering chunks from the oldest (ACT; LeRobot
//                               ACTTemporalEnsembler)
//
// A chunk that is about to end leaves over its last step: its presence p falls from 1 to
// 0 in a line, where others go on its share with it, so that its end is not a step of the
// target (at a policy tick, a whole row, its share is still whole and the result equals
// the references'). Where the newest replaces the others whole, they are not gone back to
// when it ends.
//
// How far the target may jump when a chunk comes into view or goes, where two chunks
// differ by at most D at any time (cubic: 1.25 times what their rows differ by) and V in
// their slopes. p is 1, but in a chunk's last step; P is the largest p of the chunks that
// were there:
//
//                     comes, rad     comes, rad/s            goes, rad
//   replace           D              V                       0
//   latest_only       D              V                       0
//   crossfade         0              0                       0
//   weighted_average  s D            s V + (|s'| + s g) D    0      s = 0.7p/(0.7p+0.3P)
//   average           s D            s V + (|s'| + s g) D    0      s = 0.5p/(0.5p+0.5P)
//   conservative      s D            s V + (|s'| + s g) D    0      s = 0.3p/(0.3p+0.7P)
//   ensemble          s D            s V + (|s'| + s g) D    0      s = w_new p/Σ(w p)
//   blend = false     D              0                       D, if it was the newest
//
// s' and g are 0 but while a chunk is in its last step, where shares move and the target
// with them: s' is the slope of s in 1/s, g half the sum of |slope| of the old chunks'
// shares among themselves (half, since they add up to 1). An average of share a whose one
// side alone is in its last step has |s'| <= max(a/(1-a), (1-a)/a) per step: 1 for
// 0.5, 2.4 for 0.7 and 0.3.
//
// crossfade: with a fade_ns of 0 as replace. Where the oldest chunk gives way at
// capacity, that adds its share of D. What the jump was is in chunk_target, per joint.
// (Tested in every mode.)
//
// A joint with blend = false always takes the newest chunk and is not interpolated
// (grippers).
//
// Chunks carry the generation of the policy that made them. Generations do not blend: when
// a chunk of a newer one comes into view, at t0, the older ones are forgotten, and until
// t0 + T the target is the new generation's own, blended as above, plus
//
//   h(t) = d (1 - 3x² + 2x³) + w T (x - 2x² + x³)        x = (t - t0) / T
//
// where d and w are what the old target was more than the new one at t0, in position and in
// slope; without an old one that covers t0, what the command was (chunks_commanded). T is
// bridge_ns, cut to what the new chunk covers. h is d and its slope is w at t0, and both
// are 0 at t0 + T: the jump of position and slope is 0 at either end, whatever the mode. In
// between, as far as the chunks are continuous themselves, the target is as well, and
//
//   |h|  <= |d| + 4/27 |w| T            |h'| <= 1.5 |d| / T + |w|
//   |h''| <= 6 |d| / T² + 4 |w| / T
//
// is how far it lies from the new chunk's motion. It is cut at the hard range, where one is
// set. blend = false joints have no bridge, nor has a bridge_ns of 0: there the target jumps as
// in mode replace. A bridge ends early when no chunk covers now.
//
// chunks_init and chunks_free (plain) live in chunks_init.c; all else is rt.
#ifndef ACTD_CHUNKS_H
#define ACTD_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/clock.h"
#include "daemon/guard.h"

enum chunk_mode {
    CHUNK_REPLACE,
    CHUNK_CROSSFADE,
    CHUNK_ENSEMBLE,
    CHUNK_WEIGHTED_AVERAGE,
    CHUNK_LATEST_ONLY,
    CHUNK_AVERAGE,
    CHUNK_CONSERVATIVE,
};
enum chunk_interpolation { CHUNK_HOLD, CHUNK_LINEAR, CHUNK_CUBIC };

#define CHUNKS_STEP_MOST (60 * NS_PER_S)
// Crosses from the infer thread to the loop through a ring; rows follow the header.
struct chunk {
    uint64_t id;         // counts inferences from 1
    ns_t anchor_ns;      // capture time of the observation: row 0's time
    ns_t oldest_ns;      // capture time of the oldest frame used
    ns_t ready_ns;       // when the inference was done
    ns_t step_ns;        // of a row, at most CHUNKS_STEP_MOST; 0 = the configuration's
    uint32_t generation; // of the policy that made it; counts policies of this process
    int32_t rows, joints;
    float row[]; // (rows, joints) rad, robot's joint order
};
size_t chunk_bytes(int rows, int joints);

struct chunks_config {
    enum chunk_mode mode;
    enum chunk_interpolation interpolation;
    int rows; // rows of a chunk that may be executed (horizon)
    int joints;
    int capacity;    // live chunks kept at most; the oldest gives way
    ns_t step_ns;    // policy period, of chunks that do not say their own
    ns_t fade_ns;    // crossfade
    ns_t bridge_ns;  // from one generation to the next, 0 = a jump
    ns_t max_age_ns; // of the observation (the anchor), 0 = the chunk's own duration
    bool own_age;    // max_age_ns is but what rows * step_ns are: each chunk has its own
    double ensemble_coeff;
    bool blend[ACTD_MAX_JOINTS];
    // rad: a chunk with any row beyond is refused whole; both 0 = not checked.
    double hard_min[ACTD_MAX_JOINTS], hard_max[ACTD_MAX_JOINTS];
};

enum chunk_verdict {
    CHUNK_USED,
    CHUNK_LATE,
    CHUNK_OUT_OF_ORDER, // also: of an older generation than the newest accepted
    CHUNK_TOO_OLD,
    CHUNK_WRONG_SHAPE, // width, rows, step
    CHUNK_NOT_FINITE,
    CHUNK_OUT_OF_RANGE,
};
#define CHUNK_VERDICTS 7
const char *chunk_verdict_name(enum chunk_verdict v);

// The value for which a chunk was refused.
struct chunk_culprit {
    int joint, row; // joint -1 = none yet
    double value;   // rad
};

struct chunk_target {
    double pos[ACTD_MAX_JOINTS]; // rad
    double vel[ACTD_MAX_JOINTS]; // rad/s, slope of the blended target; 0 in a held row
    uint64_t newest_id;
    uint32_t generation; // the newest chunk's, as are
    int rows;            // those that may be used, and
    ns_t step_ns;        // of a row
    ns_t anchor_ns;      // of the newest chunk's row 0
    double row;          // place inside the newest chunk, in rows
    ns_t oldest_ns;      // capture time of the oldest frame behind it
    int blended;         // chunks that took part
    // Jump of the target because chunks came into view in this tick (or gave way to
    // them): the difference between with and without, per joint; 0 in all other ticks.
    double seam[ACTD_MAX_JOINTS];     // rad
    double seam_vel[ACTD_MAX_JOINTS]; // rad/s
    double seam_max;                  // rad: the largest over the blended joints
};

struct chunks; // opaque, allocated by chunks_init

int chunks_init(struct chunks **out, const struct chunks_config *cfg); // plain
void chunks_free(struct chunks *q);                                    // plain

// Takes a copy. The verdict is counted. The chunk comes into view with the next
// chunks_target at or after its row 0.
enum chunk_verdict chunks_push(struct chunks *q, const struct chunk *c, ns_t now);
// Of the last chunk that was not finite or out of range.
struct chunk_culprit chunks_culprit(const struct chunks *q);

// The target at `now`, which never goes back. 0, -ENODATA when no live chunk covers now,
// -ESTALE when one would but its observation is older than max_age.
int chunks_target(struct chunks *q, ns_t now, struct chunk_target *out);

// Before anything is executed: what the newest chunk wants first (its row 0). 0, -ENODATA
// or -ESTALE as above.
int chunks_first(const struct chunks *q, ns_t now, struct chunk_target *out);

// Execution begins now: only the newest chunk stays, and its row 0 is for now (before
// anything has been executed nothing is skipped). 0 or -ENODATA.
int chunks_begin(struct chunks *q, ns_t now);

// What is commanded, extrapolated to this tick: told before each chunks_target, so that a new
// generation can begin there when no chunk of the old one covers now. pos, vel (joints).
void chunks_commanded(struct chunks *q, const double *pos, const double *vel);

// Forgets all chunks and what was newest; the counts stay.
void chunks_clear(struct chunks *q);
uint64_t chunks_count(const struct chunks *q, enum chunk_verdict v);
// Rows of the newest chunk still to come at `now`, 0 when there are none.
double chunks_remaining(const struct chunks *q, ns_t now);

#endif
