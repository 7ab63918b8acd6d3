// golden_gen: the integer generator that grows the weights and inputs of golden cases, the
// same as tests/parity/gen.py to the bit. Only 64-bit integers and float operations with one
// rounding each, so it needs -ffp-contract=off.
//
//   key      mix(fnv1a(name) ^ mix(seed + GAMMA))
//   z[i]     mix(key + (i + 1) * GAMMA)
//   float    (2 * (z >> 40) + 1 - 2^24) * 2^-24, exact and within (-1, 1); then * scale, + offset
//   byte     z >> 56
#ifndef ACTD_GOLDEN_GEN_H
#define ACTD_GOLDEN_GEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN_GAMMA 0x9E3779B97F4A7C15u

static inline uint64_t golden_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// FNV-1a of the name, mixed with the seed.
static inline uint64_t golden_key(uint64_t seed, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001B3u;
    return golden_mix(h ^ golden_mix(seed + GOLDEN_GAMMA));
}

static inline uint64_t golden_int(uint64_t key, size_t i)
{
    return golden_mix(key + ((uint64_t)i + 1) * GOLDEN_GAMMA);
}

static inline float golden_float(uint64_t key, size_t i, float scale, float offset)
{
    int32_t k = (int32_t)(golden_int(key, i) >> 40) * 2 + 1 - (1 << 24);

    return (float)k * 0x1p-24f * scale + offset;
}

static inline void golden_floats(uint64_t seed, const char *name, float *dst, size_t n,
                                 float scale, float offset)
{
    uint64_t key = golden_key(seed, name);

    for (size_t i = 0; i < n; i++)
        dst[i] = golden_float(key, i, scale, offset);
}

// An RGB frame of noise, (height, width, 3).
static inline void golden_image(uint64_t seed, const char *key, uint8_t *rgb, size_t n)
{
    char name[160];

    snprintf(name, sizeof(name), "image/%s", key);
    uint64_t k = golden_key(seed, name);
    for (size_t i = 0; i < n; i++)
        rgb[i] = (uint8_t)(golden_int(k, i) >> 56);
}

// float32 to bfloat16 bits, round to nearest even (finite values).
static inline uint16_t golden_bf16(float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof(u));
    return (uint16_t)((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

// float32 to IEEE half bits, round to nearest even (finite, below 65504).
static inline uint16_t golden_f16(float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof(u));
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000);
    int exponent = (int)((u >> 23) & 0xFF) - 127 + 15; // as a half's
    uint32_t mantissa = (u & 0x7FFFFF) | 0x800000;
    int drop = 13; // bits of the mantissa that a half has no room for
    if (exponent <= 0)
        drop += 1 - exponent; // subnormal
    if (drop > 24)
        return sign;
    uint32_t half = mantissa >> drop, rest = mantissa & ((1u << drop) - 1);
    uint32_t middle = 1u << (drop - 1);
    if (rest > middle || (rest == middle && (half & 1)))
        half++;
    // The mantissa's leading 1 adds one to the exponent field of a normal number.
    uint32_t field = exponent > 0 ? ((uint32_t)exponent - 1) << 10 : 0;
    return (uint16_t)(sign | (half + field));
}

#endif
