#include "daemon/content.h"

#include <string.h>

#define WORDS  (CONTENT_SAMPLE / sizeof(uint64_t))
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

// For one word the next hash is a one-to-one function of the last, and for one hash of
// the word: two payloads that differ in a single sampled word never hash alike.
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * GOLDEN;
    return hash ^ hash >> 32;
}

// Where in a stretch of `stretch` bytes word i is taken. Not always at the same place:
// the length of a stretch may divide that of a row, and all words would lie in one
// column.
static size_t place(size_t i, size_t stretch)
{
    return (size_t)((i * GOLDEN) >> 32) % (stretch - sizeof(uint64_t) + 1);
}

uint64_t content_hash(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    size_t stretch = size > CONTENT_SAMPLE ? size / WORDS : sizeof(uint64_t);
    uint64_t hash = mix(GOLDEN, size), word;

    for (size_t i = 0; i < WORDS && (i + 1) * stretch <= size; i++) {
        memcpy(&word, bytes + i * stretch + place(i, stretch), sizeof word);
        hash = mix(hash, word);
    }
    if (size <= CONTENT_SAMPLE) {
        word = 0;
        memcpy(&word, bytes + size / sizeof word * sizeof word, size % sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

// Four lanes, so that no multiplication waits for the one before: a quarter of the words each, and
// a word's change changes its lane, and a lane's the result, for certain.
uint64_t content_check(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t a = GOLDEN, b = GOLDEN + 1, c = GOLDEN + 2, d = GOLDEN + 3, word[4];
    uint64_t hash = mix(GOLDEN, size);
    size_t i = 0;

    for (; size - i >= sizeof word; i += sizeof word) {
        memcpy(word, bytes + i, sizeof word);
        a = mix(a, word[0]);
        b = mix(b, word[1]);
        c = mix(c, word[2]);
        d = mix(d, word[3]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, bytes + i, size - i);
    hash = mix(hash, mix(a, word[0]));
    hash = mix(hash, mix(b, word[1]));
    hash = mix(hash, mix(c, word[2]));
    return mix(hash, mix(d, word[3]));
}

bool content_same(struct content *c, const void *data, size_t size)
{
    uint64_t hash = content_hash(data, size);
    bool same = c->any && hash == c->hash;

    c->hash = hash;
    c->any = true;
    return same;
}
