// The clock of the whole program is the world's. Linked in place of daemon/clock.c: an archive's
// member is only taken for what nothing before it defines.
#include "daemon/clock.h"
#include "tests/fault/world.h"

struct world *world_current;

ns_t clock_now_ns(void)
{
    return world_current ? world_current->now : WORLD_START_NS;
}

ns_t clock_wall_ns(void)
{
    return clock_now_ns() + (world_current ? world_current->wall_offset_ns : 0);
}

int clock_sleep_until(ns_t when_ns)
{
    (void)when_ns; // nobody sleeps here: the world turns
    return 0;
}

ns_t clock_period_ns(double rate_hz)
{
    return (ns_t)((double)NS_PER_S / rate_hz + 0.5);
}
