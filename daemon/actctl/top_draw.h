// top_draw: one frame of the live view, from what is known to cells. Pure, so that a test
// can look at every size. plain.
#ifndef ACTD_ACTCTL_TOP_DRAW_H
#define ACTD_ACTCTL_TOP_DRAW_H

#include <stdbool.h>

#include "actd/v1/control.pb-c.h"
#include "daemon/actctl/canvas.h"

struct top_view {
    const Actd__V1__Status *s; // NULL: nothing heard so far
    const char *socket;
    const char *message; // newest event, "" = none
    enum style message_style;
    const char *lost; // why there is no daemon, "" = there is
    bool paused;
    bool keys;       // somebody can press some
    bool help;       // what they do stands where the joints were
    int first_joint; // scrolled to
};

// Clears c, which has its size already, and draws.
void top_draw(struct canvas *c, const struct top_view *v);

#endif
