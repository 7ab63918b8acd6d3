#include "daemon/wall.h"

#include "daemon/blind.h"

int64_t wall_moved(struct wall *w, ns_t before_ns, int64_t wall_ns, ns_t after_ns)
{
    int64_t ahead_ns = wall_ns - before_ns, moved_ns = ahead_ns - w->ahead_ns;

    if (after_ns - before_ns > WALL_SURE_NS || BLIND(BLIND_WALL))
        return 0;
    w->ahead_ns = ahead_ns;
    if (!w->known) {
        w->known = true;
        return 0;
    }
    return moved_ns >= WALL_LEAST_NS || moved_ns <= -WALL_LEAST_NS ? moved_ns : 0;
}
