// content: does a camera's picture still change? A frozen camera goes on sending, with
// new stamps, what it saw last; the noise of a real sensor makes two equal frames in a
// row rare, ten of them are a camera that hangs. Compared is a hash over a sample of at
// most CONTENT_SAMPLE bytes of the payload: a frame of 8 MiB costs what a small one does.
// Pure. Class io.
#ifndef ACTD_CONTENT_H
#define ACTD_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTENT_SAMPLE 4096

// Of the first CONTENT_SAMPLE bytes when there are no more; else of 512 words of 8 bytes,
// one somewhere in each 512th of the payload, always the same places for one size. The
// size counts too. Any thread class.
uint64_t content_hash(const void *data, size_t size);

// Of all bytes and their number: differs wherever a single byte does. At the speed of memory.
// Any thread class.
uint64_t content_check(const void *data, size_t size);

struct content {
    uint64_t hash; // of the frame before
    bool any;      // there was one
};
// Takes the next frame; true when it has the content of the one before it.
bool content_same(struct content *c, const void *data, size_t size);

#endif
