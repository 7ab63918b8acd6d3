// What the world's own files share. Nobody else includes this.
#ifndef ACTD_FAULT_WORLD_IMPL_H
#define ACTD_FAULT_WORLD_IMPL_H

#include "daemon/intake.h"
#include "daemon/wall.h"
#include "tests/fault/world.h"

#define WORLD_SIDE    32 // pixels
#define WORLD_LETTERS 512
#define WORLD_BYTES   (24 * 1024)
#define NEVER         INT64_MAX
#define DRIVER        (-1) // a letter to the driver; 0 = joint states, 1 … = cameras

struct letter { // a message under way
    ns_t at;    // arrives
    int to;
    uint64_t order; // of posting
    size_t size;
    uint8_t *bytes; // its own
};

struct sender { // of a stream, in the robot
    ns_t next_ns;
    uint64_t sent;
    ns_t heard_ns;    // receipt of its last message
    int64_t clock_ns; // how far its wall clock is off
    ns_t quiet_until_ns;
    bool restarted;
    struct letter kept; // for stuck, reordered: bytes of an earlier message
};

struct brain_state;

struct world_inside {
    struct intake *intake;
    struct sender sender[1 + WORLD_CAMERAS];
    struct letter letter[WORLD_LETTERS]; // no order
    int letters;
    uint64_t posted;
    ns_t next_look_ns, command_at_ns;
    ns_t work_ns;                    // of the tick that runs
    ns_t step_until_ns;              // where a step ends in which the loop does not tick
    double encoder[ACTD_MAX_JOINTS]; // what the joint states say
    uint64_t jumped;                 // the injection that made the arm jump last
    struct wall wall;
    struct brain_state *brain;
};

// What is wrong with a target at a time, or NULL.
const struct injection *world_wrong(const struct world *w, enum inject_target target,
                                    int index, ns_t at);

// world_bus.c: the wire, and the bus at its end.
ns_t world_next_letter(const struct world *w, bool to_driver); // arrives; or NEVER
void world_bus_receives(struct world *w);                      // all that is there
void world_bus_sends(struct world *w); // a command, if there is one
void world_driver_hears(struct world *w);

// sender.c: what the robot says. Each sends one message, or whatever an injection makes of it.
void sender_joints(struct world *w);
void sender_frame(struct world *w, int camera);
// Takes a copy of the bytes.
void letter_post(struct world *w, int to, ns_t at, const void *bytes, size_t size);
void letter_free(struct world *w, int i);

// world_record.c. 0 or -errno; nothing, when it is not asked for.
int world_record_begin(struct world *w);
void world_record_turn(struct world *w); // after each step
void world_record_bus(struct world *w);  // the bus' state, when it is due
void world_record_end(struct world *w);
struct intake_config world_intake(const struct world_config *c);

// brain.c: the policy's side.
int brain_new(struct world *w);
void brain_free(struct world *w);
ns_t brain_due_ns(const struct world *w); // when it wants to be called
void brain_turn(struct world *w);

#endif
