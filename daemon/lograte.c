#include "daemon/lograte.h"

static bool latches(enum ladder_state to)
{
    return to == LADDER_STOPPING || to == LADDER_STOPPED || to == LADDER_ESTOP;
}

static uint32_t tell(struct lograte *l, struct lograte_class *c, ns_t now)
{
    uint32_t n = c->left_out;

    l->left_out -= n;
    c->left_out = 0;
    c->told = true;
    c->told_ns = now;
    return n;
}

bool lograte_step(struct lograte *l, enum ladder_state from, enum ladder_state to,
                  enum ladder_reason reason, ns_t now, uint32_t *left_out)
{
    struct lograte_class *c = &l->of[from][to][reason];

    *left_out = 0;
    c->came_ns = now;
    if (c->told && now - c->told_ns < LOGRATE_PERIOD_NS && !latches(to)) {
        c->left_out++;
        l->left_out++;
        return false;
    }
    *left_out = tell(l, c, now);
    return true;
}

static bool due(const struct lograte_class *c, ns_t now)
{
    return c->left_out > 0 && now - c->came_ns >= LOGRATE_PERIOD_NS;
}

bool lograte_silent(struct lograte *l, ns_t now, enum ladder_state *from,
                    enum ladder_state *to, enum ladder_reason *reason, uint32_t *left_out)
{
    struct lograte_class *c = &l->of[0][0][0];
    const int n = LADDER_STATES * LADDER_STATES * LADDER_REASONS;

    if (l->left_out == 0) // nearly always
        return false;
    for (int i = 0; i < n; i++) {
        if (!due(&c[i], now))
            continue;
        *from = (enum ladder_state)(i / LADDER_REASONS / LADDER_STATES);
        *to = (enum ladder_state)(i / LADDER_REASONS % LADDER_STATES);
        *reason = (enum ladder_reason)(i % LADDER_REASONS);
        *left_out = tell(l, &c[i], now);
        return true;
    }
    return false;
}
