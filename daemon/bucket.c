#include "daemon/bucket.h"

#include <stddef.h>

ns_t bucket_wait(const struct bucket *b, const struct bucket_rate *r, int tokens,
                 ns_t now)
{
    ns_t full = b->full_ns > now ? b->full_ns : now;
    ns_t missing = full - now + (tokens - r->burst) * r->per_token_ns;

    return missing > 0 ? missing : 0;
}

bool bucket_take(struct bucket *b, const struct bucket_rate *r, int tokens, ns_t now)
{
    if (bucket_wait(b, r, tokens, now) > 0)
        return false;
    b->full_ns = (b->full_ns > now ? b->full_ns : now) + tokens * r->per_token_ns;
    return true;
}

struct bucket *buckets_of(struct buckets *all, uid_t uid, ns_t now)
{
    struct bucket_user *room = NULL;

    for (int i = 0; i < BUCKET_USERS; i++) {
        struct bucket_user *u = &all->user[i];

        if (u->used && u->uid == uid)
            return &u->bucket;
        if (!room && (!u->used || u->bucket.full_ns <= now))
            room = u;
    }
    if (!room)
        return &all->shared;
    *room = (struct bucket_user){.used = true, .uid = uid};
    return &room->bucket;
}
