#include "daemon/sim/sheet.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/sim/canvas.h"
#include "daemon/sim/render.h"

enum {
    COLUMNS = 7,
    PICTURE = 184, // pixels, each side
    GAP = 6,
    MARGIN = 24,
    HEAD = 74,
    PANEL = 300, // height of the plots
    WIDTH = 2 * MARGIN + COLUMNS * PICTURE + (COLUMNS - 1) * GAP,
    ROW2 = HEAD + PICTURE + GAP,
    PLOTS = ROW2 + PICTURE + 44,
    HEIGHT = PLOTS + PANEL + 44,
    PANEL_W = (WIDTH - 2 * MARGIN - 2 * 18) / 3,
};

#define PAPER 0xf7f6f3
#define INK   0x25282d
#define FAINT 0xd9d7d2
#define GREY  0x84878c
#define BLUE  0x2467b3
#define RED   0xd3261f
#define GREEN 0x2a8a44

bool sheet_story_due(const struct sheet_story *story, double time_s)
{
    return story->n < SHEET_STORY_MAX &&
           (story->n == 0 ||
            time_s >= story->s[story->n - 1].time_s + SHEET_EVERY_S - 1e-9);
}

void sheet_story_add(struct sheet_story *story, const struct snapshot *s)
{
    if (story->n < SHEET_STORY_MAX)
        story->s[story->n++] = *s;
}

// A plot: world metres (or seconds) to pixels of a panel.
struct plot {
    struct canvas *c;
    int x, y, width, height; // of the panel
    double left, bottom;     // world coordinates of its lower left corner
    double scale_x, scale_y; // pixels per unit
};

static double px(const struct plot *p, double u)
{
    return p->x + (u - p->left) * p->scale_x;
}

static double py(const struct plot *p, double v)
{
    return p->y + p->height - (v - p->bottom) * p->scale_y;
}

static void panel(struct plot *p, const char *title)
{
    canvas_text(p->c, p->x, p->y - 20, 2, INK, title);
    canvas_rect(p->c, p->x, p->y, p->width, p->height, 0xffffff);
    canvas_frame(p->c, p->x, p->y, p->width, p->height, FAINT);
}

// Grid lines every `step` of the world; the numbers below are multiplied by `per`.
static void grid(struct plot *p, double step, double per, int digits)
{
    char text[32];

    for (double u = ceil(p->left / step) * step; px(p, u) < p->x + p->width; u += step) {
        canvas_rect(p->c, (int)px(p, u), p->y + 1, 1, p->height - 2, 0xeeece8);
        snprintf(text, sizeof text, "%.*f", digits, fabs(u) < step / 2 ? 0 : u * per);
        canvas_text(p->c, (int)px(p, u) - canvas_text_width(1, text) / 2,
                    p->y + p->height + 5, 1, GREY, text);
    }
}

static void levels(struct plot *p, double step)
{
    char text[32];

    for (double v = ceil(p->bottom / step) * step; py(p, v) > p->y; v += step) {
        canvas_rect(p->c, p->x + 1, (int)py(p, v), p->width - 2, 1, 0xeeece8);
        snprintf(text, sizeof text, "%.0f", fabs(round(v * 100)));
        canvas_text(p->c, p->x + 4, (int)py(p, v) - 9, 1, GREY, text);
    }
}

// Light blue at the start, dark at the end.
static uint32_t fade(double t)
{
    uint32_t r = (uint32_t)(150 - 130 * t), g = (uint32_t)(195 - 120 * t);
    return r << 16 | g << 8 | (uint32_t)(235 - 75 * t);
}

static void plan_view(const struct snapshot *s, double *u, double *v)
{
    *u = s->tip_m[1];
    *v = -s->tip_m[0]; // the way the front camera sees it: the arm is at the top
}

static void side_view(const struct snapshot *s, double *u, double *v)
{
    *u = hypot(s->tip_m[0], s->tip_m[1]);
    *v = s->tip_m[2];
}

static void path(struct plot *p, const struct sheet_story *story,
                 void (*view)(const struct snapshot *, double *, double *))
{
    double u0, v0, u, v;

    view(&story->s[0], &u0, &v0);
    canvas_ring(p->c, px(p, u0), py(p, v0), 5, 2, INK);
    canvas_text(p->c, (int)px(p, u0) + 10, (int)py(p, v0) - 4, 1, INK, "start");
    for (int i = 1; i < story->n; i++, u0 = u, v0 = v) {
        view(&story->s[i], &u, &v);
        canvas_line(p->c, px(p, u0), py(p, v0), px(p, u), py(p, v), 3.5,
                    fade((double)i / story->n));
    }
}

// The cube's outline, the goal in it and the radius that counts as reached.
static void goal(struct plot *p, double u, double v, double cube_v)
{
    int edge = (int)(2 * SCENE_CUBE_HALF_M * p->scale_x);
    canvas_rect(p->c, (int)px(p, u) - edge / 2, (int)py(p, cube_v) - edge / 2, edge, edge,
                0xf3c6c2);
    canvas_ring(p->c, px(p, u), py(p, v), TASK_RADIUS_M * p->scale_x, 1.5, RED);
    canvas_line(p->c, px(p, u), py(p, v), px(p, u), py(p, v), 6, RED);
}

static void draw_plan(struct canvas *c, const struct sheet_story *story)
{
    const double *g = story->s[0].goal_m;
    struct plot p = {c, MARGIN, PLOTS, PANEL_W, PANEL, 0, -0.36, 0, 0};
    p.scale_x = p.scale_y = PANEL / 0.41;
    p.left = -0.5 * PANEL_W / p.scale_x;
    panel(&p, "Seen from above (cm)");
    grid(&p, 0.1, 100, 0);
    levels(&p, 0.1);
    canvas_ring(c, px(&p, 0), py(&p, 0), 0.042 * p.scale_x, 2, GREY);
    canvas_text(c, (int)px(&p, 0) - 9, (int)py(&p, 0) - 3, 1, GREY, "arm");
    goal(&p, g[1], -g[0], -g[0]);
    path(&p, story, plan_view);
}

static void draw_side(struct canvas *c, const struct sheet_story *story)
{
    const double *g = story->s[0].goal_m;
    struct plot p = {c, MARGIN + PANEL_W + 18, PLOTS, PANEL_W, PANEL, 0, -0.02, 0, 0};
    p.scale_x = p.scale_y = PANEL_W / 0.40;
    panel(&p, "Seen from the side (cm)");
    grid(&p, 0.1, 100, 0);
    levels(&p, 0.1);
    canvas_rect(c, p.x + 1, (int)py(&p, 0), p.width - 2, 2, GREY);
    goal(&p, hypot(g[0], g[1]), g[2], g[2] - SCENE_CUBE_HALF_M);
    path(&p, story, side_view);
}

static double distance(const struct snapshot *s)
{
    return mju_dist3(s->tip_m, s->goal_m);
}

static void draw_distance(struct canvas *c, const struct sheet_story *story)
{
    double start_s = story->s[0].time_s, most = 0.1;
    double length_s = fmax(1, story->s[story->n - 1].time_s - start_s);
    struct plot p = {c, MARGIN + 2 * (PANEL_W + 18), PLOTS, PANEL_W, PANEL, 0, 0, 0, 0};

    for (int i = 0; i < story->n; i++)
        most = fmax(most, distance(&story->s[i]));
    p.scale_x = PANEL_W / (length_s * 1.04);
    p.scale_y = PANEL / (most * 1.1);
    panel(&p, "Tip to goal (cm), time in s");
    canvas_rect(c, p.x + 1, (int)py(&p, TASK_RADIUS_M), p.width - 2,
                p.y + p.height - 1 - (int)py(&p, TASK_RADIUS_M), 0xe4f3e6);
    grid(&p, length_s > 3 ? 1 : 0.5, 1, 1);
    levels(&p, most > 0.25 ? 0.1 : 0.05);
    canvas_text(c, p.x + 30, (int)py(&p, TASK_RADIUS_M) - 10, 1, GREEN,
                "reached: 2.5 cm");
    for (int i = 1; i < story->n; i++)
        canvas_line(c, px(&p, story->s[i - 1].time_s - start_s),
                    py(&p, distance(&story->s[i - 1])),
                    px(&p, story->s[i].time_s - start_s), py(&p, distance(&story->s[i])),
                    3, BLUE);
}

static int draw_pictures(struct canvas *c, struct scene *scene,
                         const struct sheet_story *story)
{
    const char *why;
    struct render *r;
    uint8_t *rgb = malloc((size_t)PICTURE * PICTURE * 3);
    int rc = rgb ? render_open(&r, scene->m, PICTURE, PICTURE, &why) : -ENOMEM;

    for (int k = 0; rc == 0 && k < COLUMNS; k++) {
        const struct snapshot *s = &story->s[(story->n - 1) * k / (COLUMNS - 1)];
        int x = MARGIN + k * (PICTURE + GAP);
        char text[32];
        plant_restore(scene, s);
        for (int row = 0; row < SCENE_CAMERAS; row++) {
            render_draw(r, scene->d, scene->camera[row], PICTURE, PICTURE, rgb);
            canvas_image(c, x, row ? ROW2 : HEAD, rgb, PICTURE, PICTURE);
        }
        snprintf(text, sizeof text, "%.2f s", s->time_s - story->s[0].time_s);
        canvas_text(c, x + 6, HEAD + 6, 2, 0xffffff, text);
    }
    if (rc == 0) {
        render_close(r);
        canvas_text(c, MARGIN + 6, HEAD + PICTURE - 20, 2, 0xffffff, "front");
        canvas_text(c, MARGIN + 6, ROW2 + PICTURE - 20, 2, 0xffffff, "wrist");
    }
    free(rgb);
    return rc;
}

static void draw_head(struct canvas *c, const struct sheet_story *story, uint64_t seed)
{
    const struct snapshot *last = &story->s[story->n - 1];
    char text[160];

    canvas_text(c, MARGIN, 18, 3, INK, "reach: bring the tip to the red cube");
    snprintf(text, sizeof text,
             "episode 1, seed %llu: %s after %.1f s, the tip %.0f mm from the goal",
             (unsigned long long)seed, story->succeeded ? "reached" : "not reached",
             last->time_s - story->s[0].time_s, story->distance_m * 1000);
    canvas_text(c, MARGIN, 48, 2, story->succeeded ? GREEN : RED, text);
}

int sheet_draw(struct scene *scene, const struct sheet_story *story, const char *path_png,
               uint64_t seed)
{
    struct canvas c;
    int rc = canvas_open(&c, WIDTH, HEIGHT, PAPER);

    if (rc < 0)
        return rc;
    rc = draw_pictures(&c, scene, story);
    if (rc == 0) {
        draw_head(&c, story, seed);
        draw_plan(&c, story);
        draw_side(&c, story);
        draw_distance(&c, story);
        rc = canvas_write(&c, path_png);
    }
    canvas_close(&c);
    return rc;
}
