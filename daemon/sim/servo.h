// What the simulated servos follow: the last command, reached in a straight line over one command
// period, so that commands at 25 Hz move the joints as smoothly as commands at 200 Hz.
// When no command came in time, the reference slows down to rest by itself.
#ifndef ACTD_SIM_SERVO_H
#define ACTD_SIM_SERVO_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sim/arm.h"

#define SERVO_STOP_RAD_S2 10.0 // deceleration after a command's time to live ran out

struct servo {
    double period_s;           // of the commands
    double q[ARM_JOINTS];      // reference now, rad
    double qd[ARM_JOINTS];     // and its velocity, rad/s
    double target[ARM_JOINTS]; // where the last command wants to be, rad
    double left_s;             // until then
    double ttl_s;              // time to live left; < 0 = no command yet or given up
    uint64_t ttl_stops;
};

// Stands still at q[ARM_JOINTS].
void servo_init(struct servo *s, const double *q, double period_s);

// Takes a command: be at target[ARM_JOINTS] one period from now. Targets beyond the joints'
// mechanical range are cut to it. ttl_s <= 0: lives for ever.
void servo_command(struct servo *s, const double *target, double ttl_s);

// Moves the reference on by dt_s.
void servo_step(struct servo *s, double dt_s);

#endif
