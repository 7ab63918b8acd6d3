#include "daemon/sim/servo.h"

#include <math.h>
#include <string.h>

void servo_init(struct servo *s, const double *q, double period_s)
{
    memset(s, 0, sizeof *s);
    memcpy(s->q, q, sizeof s->q);
    memcpy(s->target, q, sizeof s->target);
    s->period_s = period_s;
    s->ttl_s = -1;
}

void servo_command(struct servo *s, const double *target, double ttl_s)
{
    for (int i = 0; i < ARM_JOINTS; i++) {
        s->target[i] = fmin(fmax(target[i], arm_min_rad[i]), arm_max_rad[i]);
        s->qd[i] = (s->target[i] - s->q[i]) / s->period_s;
    }
    s->left_s = s->period_s;
    s->ttl_s = ttl_s > 0 ? ttl_s : INFINITY;
}

static void slow_down(struct servo *s, double dt_s)
{
    for (int i = 0; i < ARM_JOINTS; i++) {
        double dv = SERVO_STOP_RAD_S2 * dt_s;
        s->qd[i] = fabs(s->qd[i]) <= dv ? 0 : s->qd[i] - copysign(dv, s->qd[i]);
        s->q[i] = fmin(fmax(s->q[i] + s->qd[i] * dt_s, arm_min_rad[i]), arm_max_rad[i]);
    }
}

void servo_step(struct servo *s, double dt_s)
{
    if (s->ttl_s < 0) {
        slow_down(s, dt_s);
        return;
    }
    s->ttl_s -= dt_s;
    if (s->ttl_s < 0)
        s->ttl_stops++;
    if (s->left_s > dt_s * 1.5) {
        for (int i = 0; i < ARM_JOINTS; i++)
            s->q[i] += s->qd[i] * dt_s;
    } else if (s->left_s > dt_s * 0.5) {
        memcpy(s->q, s->target, sizeof s->q); // the last step lands exactly
    } else {
        memset(s->qd, 0, sizeof s->qd); // arrived and nothing newer: stand
    }
    s->left_s -= dt_s;
}
