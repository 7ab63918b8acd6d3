// report_picture: what the cameras saw at the moments that matter: the beginning, the first
// stops, marks and holds, the end. Small JPEGs, in the page itself.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "daemon/camera.h"
#include "daemon/codec.h"
#include "daemon/report_impl.h"
#include "foxglove/Log.pb-c.h"

#define WIDTH    260 // pixels
#define QUALITY  72
#define MOMENTS  6
#define CAMERAS  6
#define REACH_NS UINT64_C(3000000000) // a frame this far off still shows the moment

struct moment {
    double at_s;
    char what[80];
};

// ---- a picture -------------------------------------------------------------------------------

static void base64(FILE *f, const unsigned char *data, size_t n)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned b = (unsigned)data[i] << 16 |
                     (i + 1 < n ? (unsigned)data[i + 1] << 8 : 0u) |
                     (i + 2 < n ? data[i + 2] : 0u);
        fputc(digit[b >> 18], f);
        fputc(digit[b >> 12 & 63], f);
        fputc(i + 1 < n ? digit[b >> 6 & 63] : '=', f);
        fputc(i + 2 < n ? digit[b & 63] : '=', f);
    }
}

// Each small pixel is the mean of those that it stands for.
static void shrink(const uint8_t *rgb, int w, int h, uint8_t *out, int ow, int oh)
{
    for (int y = 0; y < oh; y++)
        for (int x = 0; x < ow; x++) {
            int x0 = x * w / ow, x1 = (x + 1) * w / ow, y0 = y * h / oh,
                y1 = (y + 1) * h / oh;
            unsigned sum[3] = {0}, n = 0;
            x1 = x1 > x0 ? x1 : x0 + 1;
            y1 = y1 > y0 ? y1 : y0 + 1;
            for (int v = y0; v < y1; v++)
                for (int u = x0; u < x1; u++, n++)
                    for (int c = 0; c < 3; c++)
                        sum[c] +=
                            rgb[((size_t)v * (size_t)w + (size_t)u) * 3 + (size_t)c];
            for (int c = 0; c < 3; c++)
                out[((size_t)y * (size_t)ow + (size_t)x) * 3 + (size_t)c] =
                    (uint8_t)(sum[c] / n);
        }
}

static void write_image(FILE *f, const uint8_t *rgb, int w, int h)
{
    int ow = w < WIDTH ? w : WIDTH, oh = (int)((int64_t)h * ow / w);
    oh = oh > 0 ? oh : 1;
    uint8_t *small = malloc((size_t)ow * (size_t)oh * 3);
    unsigned char *jpeg = NULL;
    unsigned long size = 0;
    tjhandle tj = tjInitCompress();
    if (small)
        shrink(rgb, w, h, small, ow, oh);
    if (small && tj &&
        tjCompress2(tj, small, ow, 0, oh, TJPF_RGB, &jpeg, &size, TJSAMP_420, QUALITY,
                    0) == 0) {
        fprintf(f,
                "<img width=\"%d\" height=\"%d\" alt=\"\" src=\"data:image/jpeg;base64,",
                ow, oh);
        base64(f, jpeg, size);
        fputs("\"/>", f);
    }
    tjFree(jpeg);
    if (tj)
        tjDestroy(tj);
    free(small);
}

// False: no picture could be made of this message.
static bool show(FILE *f, const void *data, size_t size)
{
    struct codec_frame frame;
    int w = 0, h = 0;
    if (codec_frame(NULL, data, size, &frame) != CODEC_OK)
        return false;
    size_t bytes = (size_t)frame.width * (size_t)frame.height * 3;
    uint8_t *rgb = malloc(bytes + 1);
    bool good = rgb && camera_decode(&frame, rgb, bytes, &w, &h) == CODEC_OK;
    if (good)
        write_image(f, rgb, w, h);
    free(rgb);
    return good;
}

// ---- which -----------------------------------------------------------------------------------

static void add_moment(struct moment *m, int *n, double at_s, const char *what)
{
    for (int i = 0; i < *n; i++)
        if (fabs(m[i].at_s - at_s) < 0.2)
            return;
    if (*n == MOMENTS)
        return;
    m[*n].at_s = at_s;
    snprintf(m[*n].what, sizeof m->what, "%s", what);
    (*n)++;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const struct moment *)a)->at_s, y = ((const struct moment *)b)->at_s;
    return x < y ? -1 : x > y;
}

static void add_marks(struct report *r, struct moment *m, int *n)
{
    struct report_cursor c;
    struct mcap_error err;
    if (report_cursor_open(&c, r, "/events", &err))
        return;
    for (; c.there && *n < MOMENTS; report_cursor_next(&c, r)) {
        Foxglove__Log *e = foxglove__log__unpack(NULL, c.m.size, c.m.data);
        if (e && strcmp(e->name, "mark") == 0)
            add_moment(m, n, report_at_s(r, c.m.log_ns), e->message);
        foxglove__log__free_unpacked(e, NULL);
    }
    report_cursor_close(&c);
}

static int choose(struct report *r, struct moment *m)
{
    char what[80];
    int n = 0;
    add_moment(m, &n, 0, "start");
    add_moment(m, &n, r->seconds, "end");
    for (int pass = 0; pass < 2; pass++) { // stops, then marks, then holds
        if (pass == 1)
            add_marks(r, m, &n);
        for (int i = 0; i < r->spans && n < MOMENTS; i++) {
            const struct report_span *s = &r->span[i];
            bool stop = s->mode == LADDER_STOPPING || s->mode == LADDER_ESTOP;
            if ((i > 0 && r->span[i - 1].mode == s->mode) ||
                !(pass == 0 ? stop : s->mode == LADDER_HOLD))
                continue;
            snprintf(what, sizeof what, "%s, %s", ladder_state_name(s->mode),
                     ladder_reason_name(s->reason));
            add_moment(m, &n, s->from_s, what);
        }
    }
    for (int i = 1; i < 4 && n < 5; i++)
        add_moment(m, &n, r->seconds * i / 4, "on the way");
    qsort(m, (size_t)n, sizeof *m, by_time);
    return n;
}

// The first frame from `at` on, or the last one before it.
static bool show_from(FILE *f, struct report *r, const char *topic, uint64_t at,
                      bool last)
{
    struct logbook_cursor *c = NULL;
    struct mcap_message m;
    struct mcap_error err;
    uint64_t from = last && at > REACH_NS ? at - REACH_NS : at;
    void *own = NULL;
    size_t size = 0;
    bool shown = false;
    if (logbook_cursor_new(&c, r->book, topic, from, last ? at + 1 : at + REACH_NS))
        return false;
    while (!shown && logbook_next(c, &m, &err) == 1) {
        if (!last) {
            shown = show(f, m.data, m.size);
            continue;
        }
        void *more = realloc(own, m.size + 1);
        if (!more)
            break;
        own = more;
        memcpy(own, m.data, m.size);
        size = m.size;
    }
    if (last && own)
        shown = show(f, own, size);
    free(own);
    logbook_cursor_free(c);
    return shown;
}

static bool show_camera(FILE *f, struct report *r, const char *name,
                        const struct moment *m)
{
    char topic[CONFIG_NAME + 16];
    uint64_t at = r->start_ns + (uint64_t)(m->at_s * 1e9);
    bool shown = false;
    // What it saw last, else what it saw next.
    for (int way = 0; way < 4 && !shown; way++) {
        int raw = way % 2, last = way < 2;
        snprintf(topic, sizeof topic, "/camera/%.*s%s", CONFIG_NAME - 1, name,
                 raw ? "/raw" : "");
        shown = show_from(f, r, topic, at, last);
    }
    return shown;
}

static void row(FILE *f, struct report *r, const char *name, const struct moment *m,
                int n)
{
    fputs("<div class=\"card\"><h3>", f);
    svg_text(f, name);
    fputs("</h3><div class=\"shots\">", f);
    for (int i = 0; i < n; i++) {
        fputs("<figure>", f);
        if (!show_camera(f, r, name, &m[i]))
            fputs("<span class=\"dim small\">no frame</span>", f);
        fprintf(f, "<figcaption>%.2f s, ", m[i].at_s);
        svg_text(f, m[i].what);
        fputs("</figcaption></figure>", f);
    }
    fputs("</div></div>\n", f);
}

// Cameras of the configuration; of a file without one, those that have a topic.
static int name_cameras(const struct report *r, char name[CAMERAS][CONFIG_NAME])
{
    int n = 0;
    for (int i = 1; i < r->streams && n < CAMERAS; i++)
        memcpy(name[n++], r->stream[i].name, CONFIG_NAME);
    struct mcap_reader *m = logbook_reader(r->book, 0);
    for (int i = 0; i < mcap_channels(m) && n < CAMERAS && r->streams == 1; i++) {
        const char *topic = mcap_channel_at(m, i)->topic;
        if (strncmp(topic, "/camera/", 8) != 0)
            continue;
        snprintf(name[n], CONFIG_NAME, "%.*s", CONFIG_NAME - 1, topic + 8);
        char *raw = strstr(name[n], "/raw");
        if (raw)
            *raw = '\0';
        n++;
    }
    return n;
}

void report_pictures(FILE *f, struct report *r)
{
    struct moment m[MOMENTS];
    char name[CAMERAS][CONFIG_NAME];
    int moments = choose(r, m), cameras = name_cameras(r, name);
    if (cameras == 0)
        return;
    fputs("<h2>What it saw</h2>", f);
    for (int i = 0; i < cameras; i++)
        row(f, r, name[i], m, moments);
}
