// What camera's own files share: the three buffers and two pictures of one camera, and
// who may touch what. camera.c has the drawing.
#ifndef ACTD_CAMERA_IMPL_H
#define ACTD_CAMERA_IMPL_H

#include <pthread.h>

#include "daemon/camera.h"
#include "daemon/content.h"
#include "daemon/jpeg.h"
#include "daemon/pace.h"

#define CAMERA_FRESH 4u // beside the index of the middle buffer

struct camera_raw {
    uint8_t *bytes; // (CODEC_FRAME_MAX)
    struct codec_frame frame;
    ns_t received_ns, capture_ns;
};

struct camera_pixels {
    uint8_t *rgb; // (height, width, 3), room for the largest
    int width, height;
    ns_t received_ns, capture_ns;
    uint64_t number; // of the frames that were shown, from 1
};

struct camera {
    struct camera_mark *mark;
    ns_t latency_ns;           // exposure to stamp
    int width, height;         // that every frame must have, 0 = any
    const _Atomic bool *armed; // NULL = never
    struct tape *tape;         // NULL = none
    int stream;                // on it
    struct codec_stamp stamp;  // bus, and so are
    struct content content;    // of accepted frames
    struct pace pace;          // of accepted and superseded ones
    uint64_t passed_over;      // superseded that pace has yet to count
    _Atomic int last_refusal;  // enum codec_verdict, written by the bus
    struct slot why;           // its sentence, char[CODEC_WHY_MAX]
    _Atomic uint64_t superseded;
    struct camera_raw raw[3];
    unsigned back;  // bus
    unsigned front; // decoder
    _Atomic unsigned middle;
    struct camera_pixels pixels[2];
    _Atomic int shown;                // -1 before the first good frame
    ns_t given_ns;                    // infer: receipt of the frame that it has
    _Atomic uint32_t asked, answered; // requests; equal = none open
    _Atomic int64_t from_ns; // the newest request is for a frame captured then or later
    uint64_t number;         // decoder: of the frame shown last
    _Atomic uint32_t bell;   // rung for a request, and for a frame after a bad one
    _Atomic bool stop;
    struct jpeg *jpeg;
    bool threaded; // the decoder is a thread; else whoever rings the bell
    pthread_t thread;
};

// Something to do for the decoder: wakes its thread, or does it. Any thread class but rt.
void camera_ring(struct camera *c);

// One frame's pixels into rgb, (height, width, 3). The decoder's.
enum codec_verdict camera_pixels(struct jpeg *j, const struct codec_frame *f,
                                 uint8_t *rgb);

#endif
