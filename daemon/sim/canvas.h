// A picture to draw on: rectangles, smooth lines and discs, text in a built-in font, PNG out.
// plain thread. Drawing outside the picture is cut off.
#ifndef ACTD_SIM_CANVAS_H
#define ACTD_SIM_CANVAS_H

#include <stdint.h>

enum {
    CANVAS_FONT_FIRST = 32,
    CANVAS_FONT_LAST = 122,
    CANVAS_GLYPH_W = 6, // pixels at scale 1, the gap included
    CANVAS_GLYPH_H = 9, // two of them below the line
};

extern const unsigned char canvas_font[CANVAS_FONT_LAST - CANVAS_FONT_FIRST + 1]
                                      [CANVAS_GLYPH_H];

struct canvas {
    int width, height;
    uint8_t *rgb; // [height][width][3]
};

// Colours are 0xRRGGBB.
int canvas_open(struct canvas *c, int width, int height,
                uint32_t background); // 0, -ENOMEM
void canvas_close(struct canvas *c);
void canvas_rect(struct canvas *c, int x, int y, int width, int height, uint32_t colour);
void canvas_frame(struct canvas *c, int x, int y, int width, int height, uint32_t colour);
void canvas_image(struct canvas *c, int x, int y, const uint8_t *rgb, int width,
                  int height);
// Round ends, `thick` pixels across, edges smoothed.
void canvas_line(struct canvas *c, double x0, double y0, double x1, double y1,
                 double thick, uint32_t colour);
void canvas_ring(struct canvas *c, double x, double y, double radius, double thick,
                 uint32_t colour);
void canvas_text(struct canvas *c, int x, int y, int scale, uint32_t colour,
                 const char *text);
int canvas_text_width(int scale, const char *text);
// 0, or -EIO when the file cannot be written.
int canvas_write(const struct canvas *c, const char *path);

#endif
