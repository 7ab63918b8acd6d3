// bucket: how often somebody may ask. A bucket of `burst` tokens that fills at a steady
// rate; whoever finds too few in it has asked too often. Kept as one number, the time at
// which the bucket is full again, so that an idle bucket needs no care and no clock ticks
// for it (the GCRA of ATM networks). Pure: the times are the caller's. Any thread class.
#ifndef ACTD_BUCKET_H
#define ACTD_BUCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/clock.h"

struct bucket_rate {
    ns_t per_token_ns; // one token comes in so long
    int burst;         // tokens in a full bucket
};

struct bucket { // all zero: full
    ns_t full_ns;
};

// Takes `tokens` (0 … burst), or nothing and returns false.
bool bucket_take(struct bucket *b, const struct bucket_rate *r, int tokens, ns_t now);
// Until so many tokens will be there; 0 = they are.
ns_t bucket_wait(const struct bucket *b, const struct bucket_rate *r, int tokens,
                 ns_t now);

// A bucket for each of the users seen lately. A full bucket is forgotten for a newcomer,
// which changes nothing; one that is not full never is, since that would fill it. Users
// for whom there is no room share one.
#define BUCKET_USERS 64
struct buckets { // all zero to begin with
    struct bucket_user {
        bool used;
        uid_t uid;
        struct bucket bucket;
    } user[BUCKET_USERS];
    struct bucket shared;
};
// Whose it is until the next call.
struct bucket *buckets_of(struct buckets *all, uid_t uid, ns_t now);

#endif
