#include "daemon/sim/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <EGL/egl.h>
#include <EGL/eglext.h>

// Mesa keeps some memory for the life of the process, which the leak checker would report at the
// end of every run with sanitizers. Called by nobody else.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:swrast_dri.so\nleak:libEGL_mesa.so\nleak:libgallium\n";
}

struct render {
    mjModel *m;
    mjvScene scene;
    mjvOption option;
    mjrContext context;
    EGLDisplay display;
    EGLContext gl;
    uint8_t *flipped; // [height][width][3], bottom row first, as OpenGL reads it
};

static int open_gl(struct render *r, const char **why)
{
    static const EGLint attributes[] = {EGL_SURFACE_TYPE,
                                        EGL_PBUFFER_BIT,
                                        EGL_RENDERABLE_TYPE,
                                        EGL_OPENGL_BIT,
                                        EGL_RED_SIZE,
                                        8,
                                        EGL_DEPTH_SIZE,
                                        24,
                                        EGL_NONE};
    EGLConfig config;
    EGLint n = 0;

    r->display =
        eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    *why = "no EGL display: install libegl1, libegl-mesa0 and libgl1-mesa-dri";
    if (r->display == EGL_NO_DISPLAY || !eglInitialize(r->display, NULL, NULL))
        return -ENODEV;
    *why = "EGL offers no OpenGL: install libgl1-mesa-dri";
    if (!eglBindAPI(EGL_OPENGL_API) ||
        !eglChooseConfig(r->display, attributes, &config, 1, &n) || n < 1)
        return -ENODEV;
    r->gl = eglCreateContext(r->display, config, EGL_NO_CONTEXT, NULL);
    if (r->gl == EGL_NO_CONTEXT ||
        !eglMakeCurrent(r->display, EGL_NO_SURFACE, EGL_NO_SURFACE, r->gl))
        return -ENODEV;
    return 0;
}

int render_open(struct render **out, const mjModel *m, int width, int height,
                const char **why)
{
    struct render *r = calloc(1, sizeof *r);
    int rc = -ENOMEM;

    *why = "out of memory";
    if (!r)
        return rc;
    r->flipped = malloc((size_t)width * (size_t)height * 3);
    r->m = mj_copyModel(NULL, m);
    if (!r->flipped || !r->m)
        goto fail;
    rc = open_gl(r, why);
    if (rc < 0)
        goto fail;
    // Off-screen buffers are cleared and resolved whole: no larger than the largest picture.
    r->m->vis.global.offwidth = width;
    r->m->vis.global.offheight = height;
    mjv_defaultOption(&r->option);
    mjv_makeScene(r->m, &r->scene, 200);
    mjr_makeContext(r->m, &r->context, mjFONTSCALE_50);
    mjr_setBuffer(mjFB_OFFSCREEN, &r->context);
    r->scene.flags[mjRND_SHADOW] = 0;
    r->scene.flags[mjRND_REFLECTION] = 0;
    *out = r;
    return 0;
fail:
    render_close(r);
    return rc;
}

void render_close(struct render *r)
{
    if (!r)
        return;
    if (r->gl) {
        mjr_freeContext(&r->context);
        mjv_freeScene(&r->scene);
        eglMakeCurrent(r->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        eglDestroyContext(r->display, r->gl);
    }
    // The display stays initialised: it is the process's one, and eglTerminate would unload the
    // driver only to load it again for the next picture.
    if (r->m)
        mj_deleteModel(r->m);
    free(r->flipped);
    free(r);
}

void render_draw(struct render *r, mjData *d, int camera, int width, int height,
                 uint8_t *rgb)
{
    mjvCamera eye;
    mjrRect view = {0, 0, width, height};
    size_t row = (size_t)width * 3;

    mjv_defaultCamera(&eye);
    eye.type = mjCAMERA_FIXED;
    eye.fixedcamid = camera;
    mjv_updateScene(r->m, d, &r->option, NULL, &eye, mjCAT_ALL, &r->scene);
    mjr_render(view, &r->scene, &r->context);
    mjr_readPixels(r->flipped, NULL, view, &r->context);
    for (int y = 0; y < height; y++)
        memcpy(rgb + (size_t)y * row, r->flipped + (size_t)(height - 1 - y) * row, row);
}
