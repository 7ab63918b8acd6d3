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
#include "daemon/camera.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/jpeg.h"
#include "daemon/rt.h"

#define FRESH  4u // beside the index of the middle buffer
#define PIXELS ((size_t)CAMERA_MAX_WIDTH * CAMERA_MAX_HEIGHT * 3)

struct raw {
    uint8_t *bytes; // (CODEC_FRAME_MAX)
    struct codec_frame frame;
    ns_t capture_ns;
};

struct pixels {
    uint8_t *rgb; // (height, width, 3), room for PIXELS bytes
    int width, height;
    ns_t capture_ns;
};

struct camera {
    struct camera_mark *mark;
    ns_t latency_ns;          // exposure to stamp
    struct codec_stamp stamp; // bus
    _Atomic int last_refusal; // enum codec_verdict, written by the bus
    struct slot why;          // its sentence, char[CODEC_WHY_MAX]
    _Atomic uint64_t superseded;
    struct raw raw[3];
    unsigned back;  // bus
    unsigned front; // decoder
    _Atomic unsigned middle;
    struct pixels pixels[2];
    _Atomic int shown;                // -1 before the first good frame
    _Atomic uint32_t asked, answered; // requests; equal = none open
    _Atomic uint32_t bell; // rung for a request, and for a frame after a bad one
    _Atomic bool stop;
    struct jpeg *jpeg;
    bool running;
    pthread_t thread;
};

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

// ---- from bytes to pixels -------------------------------------------------------------

static void row_to_rgb(const struct codec_frame *f, const uint8_t *row, uint8_t *rgb)
{
    size_t n = (size_t)f->width;

    switch (f->format) {
    case CODEC_RGB8:
        memcpy(rgb, row, 3 * n);
        break;
    case CODEC_BGR8:
        for (size_t i = 0; i < n; i++, rgb += 3, row += 3) {
            rgb[0] = row[2];
            rgb[1] = row[1];
            rgb[2] = row[0];
        }
        break;
    case CODEC_MONO8:
        for (size_t i = 0; i < n; i++, rgb += 3)
            memset(rgb, row[i], 3);
        break;
    case CODEC_JPEG:
        break;
    }
}

static enum codec_verdict decode(struct jpeg *j, const struct codec_frame *f,
                                 uint8_t *rgb)
{
    size_t row = 3 * (size_t)f->width;

    if (f->format == CODEC_JPEG)
        return jpeg_decode(j, f->data, f->size, f->width, f->height, rgb) == 0
                   ? CODEC_OK
                   : CODEC_BAD_FORMAT;
    for (int y = 0; y < f->height; y++)
        row_to_rgb(f, f->data + (size_t)y * (size_t)f->step, rgb + (size_t)y * row);
    return CODEC_OK;
}

enum codec_verdict camera_decode(const struct codec_frame *f, uint8_t *rgb,
                                 size_t capacity, int *width, int *height)
{
    struct jpeg *j = NULL;
    enum codec_verdict v;

    if (3 * (size_t)f->width * (size_t)f->height > capacity)
        return CODEC_BAD_SIZE;
    if (f->format == CODEC_JPEG && jpeg_new(&j) != 0)
        return CODEC_BAD_FORMAT;
    v = decode(j, f, rgb);
    jpeg_free(j);
    *width = f->width;
    *height = f->height;
    return v;
}

// ---- decode thread --------------------------------------------------------------------

static bool fresh(struct camera *c)
{
    return atomic_load(&c->middle) & FRESH;
}

static void decode_newest(struct camera *c)
{
    struct raw *r;
    int hidden = atomic_load_explicit(&c->shown, memory_order_relaxed) == 0 ? 1 : 0;
    struct pixels *p = &c->pixels[hidden];

    if (!fresh(c))
        return;
    c->front = atomic_exchange(&c->middle, c->front) & ~FRESH;
    r = &c->raw[c->front];
    if (decode(c->jpeg, &r->frame, p->rgb) != CODEC_OK) {
        atomic_fetch_add_explicit(&c->mark->corrupt, 1, memory_order_relaxed);
        atomic_fetch_add(&c->mark->corrupt_in_a_row, 1);
        return;
    }
    p->width = r->frame.width;
    p->height = r->frame.height;
    p->capture_ns = r->capture_ns;
    atomic_store_explicit(&c->shown, hidden, memory_order_release);
    atomic_store(&c->mark->corrupt_in_a_row, 0);
}

// A frame after one that did not decode, which nobody need ask for: were the loop to
// wait for a good one before it asks again, neither would ever come.
static bool retry(struct camera *c)
{
    return atomic_load(&c->mark->corrupt_in_a_row) > 0 && fresh(c);
}

static void ring_bell(struct camera *c)
{
    atomic_fetch_add(&c->bell, 1);
    futex_wake(&c->bell);
}

static void *decode_loop(void *arg)
{
    struct camera *c = arg;
    uint32_t done = 0;

    for (;;) {
        uint32_t bell = atomic_load(&c->bell);
        uint32_t asked = atomic_load(&c->asked);

        if (atomic_load(&c->stop))
            return NULL;
        if (asked == done && !retry(c)) {
            futex_wait(&c->bell, bell, -1);
            continue;
        }
        decode_newest(c);
        if (asked == done)
            continue;
        done = asked;
        atomic_store(&c->answered, done);
        futex_wake(&c->answered);
    }
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

int camera_start(struct camera **out, const char *name, struct camera_mark *mark,
                 double latency_ms)
{
    struct camera *c = calloc(1, sizeof *c);
    char thread_name[16];
    int r;

    *out = NULL;
    if (!c)
        return -ENOMEM;
    c->mark = mark;
    c->latency_ns = (ns_t)(latency_ms * (double)NS_PER_MS);
    c->front = 1;
    c->middle = 2;
    c->shown = -1;
    snprintf(thread_name, sizeof thread_name, "actd-cam-%.6s", name);
    r = buffers_new(c);
    if (r == 0)
        r = rt_thread_create(&c->thread, thread_name, RT_CLASS_PLAIN, 0, decode_loop, c);
    c->running = r == 0;
    if (r != 0) {
        camera_stop(c);
        return r;
    }
    *out = c;
    return 0;
}

void camera_stop(struct camera *c)
{
    if (!c)
        return;
    if (c->running) {
        atomic_store(&c->stop, true);
        ring_bell(c);
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

// ---- io: the bus ----------------------------------------------------------------------

void camera_refuse(struct camera *c, enum codec_verdict why, const char *text)
{
    char sentence[CODEC_WHY_MAX] = "";

    memcpy(sentence, text, strnlen(text, sizeof sentence - 1));
    slot_write(&c->why, sentence);
    atomic_store_explicit(&c->last_refusal, (int)why, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->mark->refused, 1, memory_order_relaxed);
}

enum codec_verdict camera_last_refusal(const struct camera *c)
{
    return (enum codec_verdict)atomic_load_explicit(&c->last_refusal,
                                                    memory_order_relaxed);
}

void camera_last_refusal_text(const struct camera *c, char text[CODEC_WHY_MAX])
{
    if (slot_read(&c->why, text) == 0)
        snprintf(text, CODEC_WHY_MAX, "%s",
                 slot_count(&c->why) > 0 ? codec_verdict_name(camera_last_refusal(c))
                                         : "");
}

void camera_supersede(struct camera *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->superseded, n, memory_order_relaxed);
}

uint64_t camera_superseded(const struct camera *c)
{
    return atomic_load_explicit(&c->superseded, memory_order_relaxed);
}

static void refuse(struct camera *c, const struct codec *codec, enum codec_verdict v)
{
    camera_refuse(c, v, codec ? codec_why(codec) : codec_verdict_name(v));
}

void camera_park(struct camera *c, struct codec *codec, const void *data, size_t size,
                 ns_t received_ns)
{
    struct raw *r = &c->raw[c->back];
    enum codec_verdict v = codec_frame(codec, data, size, &r->frame);
    ns_t capture_ns;
    int mapped;

    if (v != CODEC_OK) {
        refuse(c, codec, v);
        return;
    }
    mapped =
        codec_stamp_map(&c->stamp, r->frame.stamp_wall_ns, received_ns, &r->capture_ns);
    if (mapped == -EALREADY) {
        atomic_fetch_add_explicit(&c->mark->duplicate, 1, memory_order_relaxed);
        return;
    }
    if (mapped != 0) {
        refuse(c, codec,
               codec_refuse_stamp(codec, &c->stamp, r->frame.stamp_wall_ns, received_ns));
        return;
    }
    capture_ns = r->capture_ns -= c->latency_ns;
    memcpy(r->bytes, r->frame.data, r->frame.size);
    r->frame.data = r->bytes;
    c->back = atomic_exchange(&c->middle, c->back | FRESH) & ~FRESH;
    // After the exchange, so that who sees the mark can have the frame.
    atomic_store_explicit(&c->mark->received_ns, received_ns, memory_order_release);
    atomic_store_explicit(&c->mark->capture_ns, capture_ns, memory_order_release);
    atomic_fetch_add_explicit(&c->mark->received, 1, memory_order_release);
    // Both in sequentially consistent order with the decoder, which counts and then looks
    // for a frame: one of the two sees the other.
    if (atomic_load(&c->mark->corrupt_in_a_row) > 0)
        ring_bell(c);
}

// ---- infer ----------------------------------------------------------------------------

void camera_request(struct camera *c)
{
    atomic_fetch_add(&c->asked, 1);
    ring_bell(c);
}

int camera_wait(struct camera *c, ns_t timeout_ns, struct policy_image *image,
                ns_t *capture_ns)
{
    ns_t until_ns = clock_now_ns() + timeout_ns;
    uint32_t asked = atomic_load_explicit(&c->asked, memory_order_relaxed);
    uint32_t answered;
    const struct pixels *p;
    int shown;

    while ((answered = atomic_load(&c->answered)) != asked) {
        ns_t left_ns = until_ns - clock_now_ns();

        if (left_ns <= 0)
            return -ETIMEDOUT;
        futex_wait(&c->answered, answered, left_ns);
    }
    shown = atomic_load_explicit(&c->shown, memory_order_acquire);
    if (shown < 0)
        return -ENODATA;
    p = &c->pixels[shown];
    *image = (struct policy_image){p->rgb, p->width, p->height, 3 * p->width};
    *capture_ns = p->capture_ns;
    return 0;
}
