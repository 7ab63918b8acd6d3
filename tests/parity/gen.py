"""The integer generator that grows every weight and input of a golden case.

tests/golden_gen.h is the same in C; both must agree to the bit, so there is nothing here but
64-bit integer arithmetic and float32 operations with one rounding each:

    fnv(name)   FNV-1a, 64 bits, over the UTF-8 bytes of the name
    mix(z)      the finaliser of splitmix64
    key         mix(fnv(name) ^ mix(seed + GAMMA))
    z[i]        mix(key + (i + 1) * GAMMA)                       i = 0, 1, ...
    float[i]    float32(2 * (z >> 40) + 1 - 2^24) * 2^-24        exact, within (-1, 1), never 0
                then * scale, then + offset                      one float32 rounding each
    byte[i]     z >> 56
"""

import math

import numpy as np

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def fnv(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def mix(z):
    """One value, as a Python integer."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def integers(seed, name, n):
    key = mix(fnv(name) ^ mix((seed + GAMMA) & MASK))
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(GAMMA) + np.uint64(key)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def floats(seed, name, shape, scale=1.0, offset=0.0):
    n = int(np.prod(shape, dtype=np.int64))
    k = (integers(seed, name, n) >> np.uint64(40)).astype(np.int64) * 2 + 1 - (1 << 24)
    v = k.astype(np.float32) * np.float32(2.0**-24)
    v = v * np.float32(scale) + np.float32(offset)
    return v.reshape(shape)


def image(seed, key, height, width):
    """An RGB frame (height, width, 3) of noise, uint8."""
    z = integers(seed, "image/" + key, height * width * 3) >> np.uint64(56)
    return z.astype(np.uint8).reshape(height, width, 3)


def scale_of(name, shape, bottleneck):
    """(scale, offset) of a tensor: what keeps a random network's values near 1 throughout.

    The numbers travel in case.json, so that C needs no copy of these rules. The last batch norm
    of a residual block is small, else variance doubles and rounding noise grows per block:
    with weights near 0.4 there, torch's own float32 is 4e-5 away from its float64.
    """
    if name.startswith("model.vae_"):  # not used at inference
        scale, offset = 0.05, 0.0
    elif name.endswith("running_var"):
        scale, offset = 0.2, 0.25  # small enough that the batch norm's eps shows
    elif name.startswith("model.backbone.") and len(shape) == 1:
        last = ("bn3" if bottleneck else "bn2") in name
        scale, offset = 0.1, 0.0
        if name.endswith("weight"):
            scale, offset = (0.05, 0.1) if last else (0.15, 0.5)
    elif ".norm" in name:
        scale, offset = (0.3, 1.0) if name.endswith("weight") else (0.2, 0.0)
    elif len(shape) == 1:
        scale, offset = 0.2, 0.0
    elif name == "model.decoder_pos_embed.weight":  # the only thing that tells rows apart
        scale, offset = 4.0, 0.0
    elif "pos_embed" in name:
        scale, offset = 1.0, 0.0
    elif len(shape) == 4:
        scale, offset = math.sqrt(6.0 / (shape[1] * shape[2] * shape[3])), 0.0
    else:
        scale, offset = math.sqrt(3.0 / shape[1]), 0.0
    return float(np.float32(scale)), float(np.float32(offset))


def statistics(seed, feature, shape):
    """What LeRobot's dataset statistics hold for one feature, all float32, ordered and uneven."""
    visual = len(shape) == 3
    stat_shape = (shape[0], 1, 1) if visual else tuple(shape)

    def grow(what, scale, offset):
        return floats(seed, f"stats/{feature}/{what}", stat_shape, scale, offset)

    mean = grow("mean", 0.1, 0.45) if visual else grow("mean", 1.0, 0.0)
    std = grow("std", 0.05, 0.25) if visual else grow("std", 0.4, 0.6)
    return {
        "min": mean - std * grow("min", 0.4, 2.9),
        "q01": mean - std * grow("q01", 0.3, 2.0),
        "q10": mean - std * grow("q10", 0.2, 1.2),
        "q50": mean + std * grow("q50", 0.1, 0.0),
        "mean": mean,
        "std": std,
        "q90": mean + std * grow("q90", 0.2, 1.3),
        "q99": mean + std * grow("q99", 0.3, 2.1),
        "max": mean + std * grow("max", 0.4, 3.1),
        "count": np.array([1000.0], dtype=np.float32),
    }
