// Draws what the cameras see, without a display: EGL on Mesa's surfaceless platform.
// A context belongs to one thread: open, draw and close from the same one (plain).
// A 96x96 picture takes about 9 ms with the software renderer on one core.
#ifndef ACTD_SIM_RENDER_H
#define ACTD_SIM_RENDER_H

#include <stdint.h>

#include <mujoco/mujoco.h>

struct render;

enum { RENDER_SIZE_MAX = 1024 }; // pixels, each side

// Pictures up to width x height. Returns 0, -ENODEV (no EGL; *why is a sentence) or -ENOMEM.
int render_open(struct render **out, const mjModel *m, int width, int height,
                const char **why);
void render_close(struct render *r);

// Picture of camera `camera` of the state in d: rgb[height][width][3], top row first.
// `d` must have its positions computed (mj_forward or mj_step1).
void render_draw(struct render *r, mjData *d, int camera, int width, int height,
                 uint8_t *rgb);

#endif
