// What codec's own files share: how a refusal gets its sentence. It is written where the
// reason is known, into memory that is there already, in ASCII whatever the sender sent.
#ifndef ACTD_CODEC_IMPL_H
#define ACTD_CODEC_IMPL_H

#include "daemon/codec.h"

#define CODEC_QUOTE 48 // a sender's word: up to 40 characters, and "..."

// Keeps the sentence (cut at CODEC_WHY_MAX) and returns v. io; c may be NULL. Only plain
// conversions: glibc's printf then needs no memory of its own.
__attribute__((format(printf, 3, 4))) enum codec_verdict
codec_refuse(struct codec *c, enum codec_verdict v, const char *format, ...);

// A sender's word (n bytes) for a sentence: what is not printable as \xNN, long ones cut.
// io. Returns out.
const char *codec_quote(char out[CODEC_QUOTE], const void *word, size_t n);

// Where codec_refuse writes; NULL for NULL. In codec.c, which alone knows struct codec.
char *codec_why_text(struct codec *c);

#endif
