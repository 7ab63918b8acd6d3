// text: what came over the wire, made fit for a terminal, and quantities for people. A
// name with an escape sequence in it must not move the cursor, colour the screen or forge
// a line. plain.
#ifndef ACTD_ACTCTL_TEXT_H
#define ACTD_ACTCTL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_BAD    UINT32_MAX // a byte that belongs to no UTF-8 character
#define TEXT_LENGTH 2048       // of what text_safe returns, the 0 included; longer is cut
#define TEXT_COUNT  16

// The first character of s (not at its end) into *cp. How many bytes it has; of a byte
// that is no UTF-8 (overlong forms, surrogates and beyond U+10FFFF are none), 1 and
// TEXT_BAD.
size_t text_decode(const char *s, uint32_t *cp);
// May stand in a terminal: no control (C0, DEL, C1), no mark that reorders or hides text.
bool text_harmless(uint32_t cp);

// s with what is not harmless written out: "\x1b", "\u202e". NULL is "". The caller's
// until the TEXT_COUNT-th call from now of any function here that returns a string.
const char *text_safe(const char *s);
// Prints s so, but keeps line ends: for texts that are lines, as metrics.
void text_print(FILE *f, const char *s);
// Prints words of s, made safe, filling lines up to `width` columns, each begun by
// `indent` blanks; nothing for "".
void text_wrap(FILE *f, int indent, int width, const char *s);
// A valid UTF-8 twin of s: bad bytes become U+FFFD. The caller frees it. NULL without
// memory.
char *text_valid(const char *s);

// "0.05 ms", "23.1 ms", "1.20 s", "3 min 05 s", "2 h 05 min", "3 d 04 h".
const char *text_ns(uint64_t ns);
const char *text_bytes(uint64_t bytes); // "1.2 MB"

#endif
