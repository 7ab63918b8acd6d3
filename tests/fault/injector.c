#include "tests/fault/injector.h"

#include <string.h>

void injector_init(struct injector *i, uint64_t seed)
{
    memset(i, 0, sizeof *i);
    i->random = seed * 2 + 1;
}

static bool over(const struct injection *one, uint64_t tick)
{
    return one->ticks != 0 && tick >= one->from + one->ticks;
}

bool injector_add(struct injector *i, const struct injection *one, uint64_t tick)
{
    for (int k = 0; k < i->n; k++)
        if (over(&i->on[k], tick)) {
            i->on[k] = *one;
            return true;
        }
    if (i->n == INJECTIONS)
        return false;
    i->on[i->n++] = *one;
    return true;
}

const struct injection *injector_find(const struct injector *i, enum inject_target target,
                                      int index, uint64_t tick)
{
    for (int k = 0; k < i->n; k++) {
        const struct injection *one = &i->on[k];

        if (one->target == target && one->verb != VERB_OK && tick >= one->from &&
            !over(one, tick) && (target != INJECT_CAMERA || one->index == index))
            return one;
    }
    return NULL;
}

bool injector_quiet(const struct injector *i, uint64_t tick)
{
    for (int k = 0; k < i->n; k++)
        if (!over(&i->on[k], tick))
            return false;
    return true;
}

uint32_t injector_random32(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

double injector_random01(uint64_t *state)
{
    return injector_random32(state) / 2147483648.0;
}

// ---- any of them -----------------------------------------------------------------------------

static const struct kind {
    enum inject_target target;
    enum inject_verb verb;
    int variants;
    double least, most; // magnitude
    int ticks;          // at most
} kinds[] = {
    {INJECT_JOINTS, VERB_OFF, 1, 0, 0, 300},
    {INJECT_JOINTS, VERB_STUCK, JOINTS_STUCKS, 0, 0, 300},
    {INJECT_JOINTS, VERB_GARBAGE, JOINTS_GARBAGES, 0, 0, 40},
    {INJECT_JOINTS, VERB_WRONG, JOINTS_WRONGS, -700, 700, 40},
    {INJECT_JOINTS, VERB_WRONG, JOINTS_WRONGS, -1, 1, 40},
    {INJECT_JOINTS, VERB_SLOW, 1, 1, 10, 300},
    {INJECT_JOINTS, VERB_DELAYED, 1, 0, 150, 300},
    {INJECT_JOINTS, VERB_INTERMITTENT, 1, 0, 1, 300},
    {INJECT_CAMERA, VERB_OFF, 1, 0, 0, 300},
    {INJECT_CAMERA, VERB_STUCK, 1, 0, 0, 300},
    {INJECT_CAMERA, VERB_GARBAGE, CAMERA_GARBAGES, 0, 0, 100},
    {INJECT_CAMERA, VERB_WRONG, CAMERA_WRONGS, -700, 700, 200},
    {INJECT_CAMERA, VERB_SLOW, 1, 1, 20, 300},
    {INJECT_CAMERA, VERB_DELAYED, 1, 0, 600, 300},
    {INJECT_CAMERA, VERB_INTERMITTENT, 1, 0, 1, 300},
    {INJECT_POLICY, VERB_OFF, 1, 0, 0, 300},
    {INJECT_POLICY, VERB_GARBAGE, 1, 0, 0, 200},
    {INJECT_POLICY, VERB_WRONG, POLICY_WRONGS, -30, 30, 200},
    {INJECT_POLICY, VERB_WRONG, POLICY_WRONGS, -2, 2, 200},
    {INJECT_POLICY, VERB_SLOW, 1, 1, 30, 300},
    {INJECT_POLICY, VERB_DELAYED, 1, 0, 1500, 300},
    {INJECT_POLICY, VERB_INTERMITTENT, 1, 0, 1, 300},
    {INJECT_LOOP, VERB_OFF, 1, 0, 0, 40},
    {INJECT_LOOP, VERB_SLOW, 1, 0, 12, 100},
    {INJECT_LOOP, VERB_DELAYED, 1, 0, 12, 100},
    {INJECT_LOOP, VERB_INTERMITTENT, 1, 0, 0.6, 100},
    {INJECT_PROCESS, VERB_STUCK, 1, 0, 0, 60},
    {INJECT_BUS, VERB_STUCK, 1, 0, 0, 60},
    {INJECT_BUS, VERB_OFF, 1, 0, 0, 100},
    {INJECT_BUS, VERB_DELAYED, 1, 0, 60, 100},
    {INJECT_BUS, VERB_INTERMITTENT, 1, 0, 1, 200},
    {INJECT_REQUESTS, VERB_WRONG, 1, 1, 64, 20},
    {INJECT_PLANT, VERB_STUCK, 1, 0, 0, 100},
    {INJECT_PLANT, VERB_WRONG, 1, -0.5, 0.5, 1},
    {INJECT_COMMAND, VERB_WRONG, 1, -3, 3, 3},
};

struct injection injector_any(uint64_t *state, uint64_t tick, int joints, int cameras)
{
    uint32_t n = sizeof kinds / sizeof *kinds;
    const struct kind *k = &kinds[injector_random32(state) % n];
    struct injection one = {.target = k->target, .verb = k->verb};
    uint32_t of = (uint32_t)(k->target == INJECT_CAMERA ? cameras : joints);

    one.variant = (int)(injector_random32(state) % (uint32_t)k->variants);
    one.index = (int)(injector_random32(state) % (of > 0 ? of : 1));
    one.from = tick + injector_random32(state) % 200;
    one.ticks = 1 + injector_random32(state) % (uint32_t)k->ticks;
    one.magnitude = k->least + (k->most - k->least) * injector_random01(state);
    return one;
}

const char *inject_target_name(enum inject_target t)
{
    static const char *const name[] = {"joints",  "camera", "policy",   "loop",
                                       "process", "bus",    "requests", "plant",
                                       "command", "disk"};

    _Static_assert(sizeof name / sizeof *name == INJECT_TARGETS, "a name per target");
    return (unsigned)t < INJECT_TARGETS ? name[t] : "?";
}

const char *inject_verb_name(enum inject_verb v)
{
    static const char *const name[] = {"ok",    "off",  "stuck",   "garbage",
                                       "wrong", "slow", "delayed", "intermittent"};

    _Static_assert(sizeof name / sizeof *name == VERBS, "a name per verb");
    return (unsigned)v < VERBS ? name[v] : "?";
}
