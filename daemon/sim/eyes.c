#include "daemon/sim/eyes.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "daemon/sim/render.h"
#include "daemon/sim/wire.h"

struct eyes {
    const struct options *o;
    void *zmq;
    struct scene scene; // a world of our own to draw from
    struct render *render;
    void *socket[SCENE_CAMERAS];
    uint8_t *rgb[SCENE_CAMERAS]; // [height][width][3], drawn last
    int64_t wall_ns;             // of it
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    // Under the lock:
    bool waiting, stop, ready;
    int rc;
    struct snapshot next;
    unsigned mute;
    uint64_t missed;
    char err[256];
};

static int open_camera(struct eyes *e, int c)
{
    char stream[64];

    e->rgb[c] = malloc((size_t)e->o->width[c] * (size_t)e->o->height[c] * 3);
    if (!e->rgb[c]) {
        snprintf(e->err, sizeof e->err, "out of memory");
        return -ENOMEM;
    }
    snprintf(stream, sizeof stream, "camera.%s", scene_camera_name[c]);
    e->socket[c] = wire_open(e->zmq, ZMQ_PUB, WIRE_FRAME_HWM, e->o->role, e->o->runtime,
                             stream, e->err, sizeof e->err);
    return e->socket[c] ? 0 : -EIO;
}

// Runs in the thread that will draw.
static int open_all(struct eyes *e)
{
    const char *why;
    int width = 0, height = 0, rc = 0;

    for (int c = 0; c < SCENE_CAMERAS; c++) {
        width = e->o->width[c] > width ? e->o->width[c] : width;
        height = e->o->height[c] > height ? e->o->height[c] : height;
        if (e->o->width[c] && (rc = open_camera(e, c)) < 0)
            return rc;
    }
    if (width == 0)
        return 0; // all cameras are off
    rc = render_open(&e->render, e->scene.m, width, height, &why);
    if (rc < 0)
        snprintf(e->err, sizeof e->err, "%s", why);
    return rc;
}

static void close_all(struct eyes *e)
{
    render_close(e->render);
    for (int c = 0; c < SCENE_CAMERAS; c++) {
        wire_close(e->socket[c]);
        free(e->rgb[c]);
    }
}

void eyes_repeat(struct eyes *e, unsigned mute)
{
    for (int c = 0; c < SCENE_CAMERAS; c++)
        if (e->socket[c] && !(mute & (1u << c)))
            wire_send_frame(e->socket[c], scene_camera_name[c], e->o->raw, e->rgb[c],
                            e->o->width[c], e->o->height[c], e->wall_ns);
}

void eyes_draw(struct eyes *e, const struct snapshot *s, unsigned mute)
{
    plant_restore(&e->scene, s);
    e->wall_ns = s->wall_ns;
    for (int c = 0; c < SCENE_CAMERAS; c++)
        if (e->socket[c])
            render_draw(e->render, e->scene.d, e->scene.camera[c], e->o->width[c],
                        e->o->height[c], e->rgb[c]);
    eyes_repeat(e, mute);
}

static void *run(void *arg)
{
    struct eyes *e = arg;
    int rc = open_all(e);

    pthread_mutex_lock(&e->lock);
    e->rc = rc;
    e->ready = true;
    pthread_cond_broadcast(&e->news);
    while (rc == 0) {
        while (!e->waiting && !e->stop)
            pthread_cond_wait(&e->news, &e->lock);
        if (e->stop)
            break;
        struct snapshot s = e->next;
        unsigned mute = e->mute;
        e->waiting = false;
        pthread_mutex_unlock(&e->lock);
        eyes_draw(e, &s, mute);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    close_all(e);
    return NULL;
}

void eyes_look(struct eyes *e, const struct snapshot *s, unsigned mute)
{
    pthread_mutex_lock(&e->lock); // held for copies only
    if (e->waiting)
        e->missed++;
    e->next = *s;
    e->mute = mute;
    e->waiting = true;
    pthread_cond_signal(&e->news);
    pthread_mutex_unlock(&e->lock);
}

uint64_t eyes_missed(struct eyes *e)
{
    pthread_mutex_lock(&e->lock);
    uint64_t n = e->missed;
    pthread_mutex_unlock(&e->lock);
    return n;
}

// Starts the thread and waits until its cameras are open or refused.
static int start(struct eyes *e)
{
    int rc = pthread_create(&e->thread, NULL, run, e);
    if (rc != 0)
        return -rc;
    pthread_mutex_lock(&e->lock);
    while (!e->ready)
        pthread_cond_wait(&e->news, &e->lock);
    rc = e->rc;
    pthread_mutex_unlock(&e->lock);
    if (rc < 0)
        pthread_join(e->thread, NULL);
    else
        e->threaded = true;
    return rc;
}

int eyes_open(struct eyes **out, const struct options *o, void *zmq, bool threaded,
              char *err, size_t err_len)
{
    struct eyes *e = calloc(1, sizeof *e);
    int rc;

    if (!e)
        return -ENOMEM;
    e->o = o;
    e->zmq = zmq;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->news, NULL);
    rc = scene_open(&e->scene, e->err, sizeof e->err);
    if (rc == 0 && threaded) {
        rc = start(e);
    } else if (rc == 0) {
        rc = open_all(e);
        if (rc < 0)
            close_all(e);
    }
    if (rc < 0) {
        snprintf(err, err_len, "%s",
                 e->err[0] ? e->err : "cannot start the camera thread");
        scene_close(&e->scene);
        free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void eyes_close(struct eyes *e)
{
    if (!e)
        return;
    if (e->threaded) {
        pthread_mutex_lock(&e->lock);
        e->stop = true;
        pthread_cond_signal(&e->news);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
    } else {
        close_all(e);
    }
    scene_close(&e->scene);
    pthread_cond_destroy(&e->news);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
