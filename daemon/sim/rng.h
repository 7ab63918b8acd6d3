// A small seeded generator, so that an episode's number and seed fix it on every machine.
// SplitMix64 (Steele, Lea, Flood 2014).
#ifndef ACTD_SIM_RNG_H
#define ACTD_SIM_RNG_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Uniform in [lo, hi).
static inline double rng_uniform(struct rng *r, double lo, double hi)
{
    return lo + (hi - lo) * (double)(rng_next(r) >> 11) * 0x1p-53;
}

// Normal, mean 0, standard deviation 1 (Box-Muller, one of the pair).
static inline double rng_normal(struct rng *r)
{
    double u = 1.0 - rng_uniform(r, 0, 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * rng_uniform(r, 0, 1));
}

#endif
