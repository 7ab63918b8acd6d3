// The cameras in their own thread: it owns the EGL context and the frame sockets, so that drawing
// (9 ms a picture) never holds up physics or joint states. It is handed a snapshot when a frame is
// due; when it is still drawing, the older snapshot waiting is given up.
#ifndef ACTD_SIM_EYES_H
#define ACTD_SIM_EYES_H

#include "daemon/sim/options.h"
#include "daemon/sim/plant.h"

struct eyes;

// Opens cameras and sockets and, with `threaded`, starts the thread. zmq is the process's context;
// the options stay the caller's. Returns 0 or -errno with a sentence in err.
int eyes_open(struct eyes **out, const struct options *o, void *zmq, bool threaded,
              char *err, size_t err_len);

// Hands over a snapshot; never waits for drawing. Bit c of `mute` silences camera c (a fault).
void eyes_look(struct eyes *e, const struct snapshot *s, unsigned mute);

// Without a thread: draws and publishes now. Sending again what was drawn last: eyes_repeat.
void eyes_draw(struct eyes *e, const struct snapshot *s, unsigned mute);
void eyes_repeat(struct eyes *e, unsigned mute);

// Frames given up since drawing was too slow.
uint64_t eyes_missed(struct eyes *e);

void eyes_close(struct eyes *e);

#endif
