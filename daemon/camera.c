// Two hand-overs, neither of which waits:
//
//   bus ──parks──> raw[3] ──newest──> decode thread ──> pixels[2] ──shown──> infer
//
// Raw messages: of three buffers one belongs to the bus (back), one to the decoder
// (front), and one lies between them (middle), marked FRESH when the decoder has not had
// it. A finished message is exchanged with the middle, and a reader that finds it fresh
// exchanges it with front: the newest always wins, and nobody ever sees a buffer that is
// being written.
//
// Pixels: the decoder writes into the picture that is not shown, and shows it only if it
// is good. Between two requests it shows at most one: it decodes unasked only after a
// failure and only up to the first good frame. So the picture that the infer thread got
// is written to only after its next request.
//
// Without a thread (camera_new) whoever rings the bell is the decoder.
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/blind.h"
#include "daemon/camera_impl.h"
#include "daemon/rt.h"

#define ANY_FRAME INT64_MIN
#define PIXELS    ((size_t)CAMERA_MAX_WIDTH * CAMERA_MAX_HEIGHT * 3)

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Sleeps while *word is value, at most timeout_ns (relative; < 0 = for ever). May wake
// early.
static void futex_wait(_Atomic uint32_t *word, uint32_t value, ns_t timeout_ns)
{
    struct timespec t = {.tv_sec = timeout_ns / NS_PER_S,
                         .tv_nsec = timeout_ns % NS_PER_S};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns < 0 ? NULL : &t, NULL,
            0);
}

// ---- decode thread --------------------------------------------------------------------

static bool fresh(struct camera *c)
{
    return atomic_load(&c->middle) & CAMERA_FRESH;
}

static void decode_newest(struct camera *c)
{
    struct camera_raw *r;
    int hidden = atomic_load_explicit(&c->shown, memory_order_relaxed) == 0 ? 1 : 0;
    struct camera_pixels *p = &c->pixels[hidden];

    if (!fresh(c))
        return;
    c->front = atomic_exchange(&c->middle, c->front) & ~CAMERA_FRESH;
    r = &c->raw[c->front];
    if (camera_pixels(c->jpeg, &r->frame, p->rgb) != CODEC_OK &&
        !BLIND(BLIND_CAMERA_DECODE)) {
        atomic_fetch_add_explicit(&c->mark->corrupt, 1, memory_order_relaxed);
        atomic_fetch_add(&c->mark->corrupt_in_a_row, 1);
        return;
    }
    p->width = r->frame.width;
    p->height = r->frame.height;
    p->received_ns = r->received_ns;
    p->capture_ns = r->capture_ns;
    p->number = ++c->number;
    atomic_store_explicit(&c->shown, hidden, memory_order_release);
    atomic_store(&c->mark->corrupt_in_a_row, 0);
}

// A frame after one that did not decode, which nobody need ask for: were the loop to
// wait for a good one before it asks again, neither would ever come.
static bool retry(struct camera *c)
{
    return atomic_load(&c->mark->corrupt_in_a_row) > 0 && fresh(c);
}

// Has a frame been parked that the newest request is for?
static bool here(struct camera *c)
{
    ns_t from_ns = atomic_load(&c->from_ns);

    return from_ns == ANY_FRAME || atomic_load(&c->mark->capture_ns) >= from_ns;
}

// What the bell was rung for. True when there was something to do.
static bool serve(struct camera *c)
{
    uint32_t asked = atomic_load(&c->asked);
    bool open =
        asked != atomic_load_explicit(&c->answered, memory_order_relaxed) && here(c);

    if (!open && !retry(c))
        return false;
    decode_newest(c);
    if (open) {
        atomic_store(&c->answered, asked);
        futex_wake(&c->answered);
    }
    return true;
}

static void *decode_loop(void *arg)
{
    struct camera *c = arg;

    for (;;) {
        uint32_t bell = atomic_load(&c->bell);

        if (atomic_load(&c->stop))
            return NULL;
        if (!serve(c))
            futex_wait(&c->bell, bell, -1);
    }
}

void camera_ring(struct camera *c)
{
    if (!c->threaded) {
        serve(c);
        return;
    }
    atomic_fetch_add(&c->bell, 1);
    futex_wake(&c->bell);
}

// ---- plain ----------------------------------------------------------------------------

static int buffers_new(struct camera *c)
{
    for (int i = 0; i < 3; i++)
        if (!(c->raw[i].bytes = malloc(CODEC_FRAME_MAX)))
            return -ENOMEM;
    for (int i = 0; i < 2; i++)
        if (!(c->pixels[i].rgb = malloc(PIXELS)))
            return -ENOMEM;
    if (slot_init(&c->why, CODEC_WHY_MAX) != 0)
        return -ENOMEM;
    return jpeg_new(&c->jpeg);
}

int camera_new(struct camera **out, struct camera_mark *mark, double latency_ms)
{
    struct camera *c = calloc(1, sizeof *c);
    int r;

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->mark = mark;
    c->latency_ns = (ns_t)(latency_ms * (double)NS_PER_MS);
    c->front = 1;
    c->middle = 2;
    c->shown = -1;
    r = buffers_new(c);
    if (r != 0) {
        camera_stop(c);
        return r;
    }
    *out = c;
    return 0;
}

int camera_start(struct camera **out, const char *name, struct camera_mark *mark,
                 double latency_ms)
{
    struct camera *c;
    char thread_name[16];
    int r = camera_new(out, mark, latency_ms);

    if (r != 0)
        return r;
    c = *out;
    snprintf(thread_name, sizeof thread_name, "actd-cam-%.6s", name);
    c->threaded = true; // before the thread looks
    r = rt_thread_create(&c->thread, thread_name, RT_CLASS_PLAIN, 0, decode_loop, c);
    if (r != 0) {
        c->threaded = false;
        camera_stop(c);
        *out = NULL;
    }
    return r;
}

void camera_stop(struct camera *c)
{
    if (!c)
        return;
    if (c->threaded) {
        atomic_store(&c->stop, true);
        camera_ring(c);
        pthread_join(c->thread, NULL);
    }
    jpeg_free(c->jpeg);
    slot_free(&c->why);
    for (int i = 0; i < 3; i++)
        free(c->raw[i].bytes);
    for (int i = 0; i < 2; i++)
        free(c->pixels[i].rgb);
    free(c);
}

// ---- infer ----------------------------------------------------------------------------

void camera_await(struct camera *c, ns_t from_ns)
{
    atomic_store(&c->from_ns, from_ns); // before the request that it belongs to
    atomic_fetch_add(&c->asked, 1);
    camera_ring(c);
}

void camera_request(struct camera *c)
{
    camera_await(c, ANY_FRAME);
}

int camera_wait(struct camera *c, ns_t timeout_ns, struct policy_image *image,
                ns_t *capture_ns)
{
    uint32_t asked = atomic_load_explicit(&c->asked, memory_order_relaxed);
    uint32_t answered;
    ns_t until_ns = 0;
    const struct camera_pixels *p;
    int shown;

    while ((answered = atomic_load(&c->answered)) != asked) {
        ns_t now_ns = clock_now_ns(), left_ns;

        if (until_ns == 0)
            until_ns = now_ns + timeout_ns;
        left_ns = until_ns - now_ns;
        if (left_ns <= 0)
            return -ETIMEDOUT;
        futex_wait(&c->answered, answered, left_ns);
    }
    shown = atomic_load_explicit(&c->shown, memory_order_acquire);
    if (shown < 0)
        return -ENODATA;
    p = &c->pixels[shown];
    *image = (struct policy_image){.rgb = p->rgb,
                                   .width = p->width,
                                   .height = p->height,
                                   .stride = 3 * p->width,
                                   .number = p->number};
    *capture_ns = p->capture_ns;
    c->given_ns = p->received_ns;
    return 0;
}

ns_t camera_received(const struct camera *c)
{
    return c->given_ns;
}
