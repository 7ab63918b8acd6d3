// memory: asks what the machine has to spare before a checkpoint takes it. config.json alone
// decides how much working memory a policy needs (an image of 16384x16384 is 17 GB), memory is
// promised by the kernel long before it is there, and what pays in the end is the daemon that
// holds an arm.
#ifndef ACTD_MEMORY_H
#define ACTD_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

// What may be taken without hurting others: MemAvailable, or half of the memory there is (and
// never more than that) where /proc/meminfo is hidden. Bytes. plain.
uint64_t memory_available(void);

// 0, or -ENOMEM with err filled when `bytes` and a reserve of 64 MiB are more than that.
int memory_check(size_t bytes, struct policy_error *err);

#endif
