// pool: a fixed team of compute threads that work on one thing at a time: the caller and
// n - 1 others. pool_run hands the same task to all of them and returns when the last has
// finished.
//
//   caller     job, generation++ ──wake──>  workers (spin, then sleep on `generation`)
//   caller     its own share
//   caller     spin, then sleep on `pending`  <──wake──  last worker: pending becomes 0
//
// Both waits spin first, since between two layers only microseconds pass and a futex
// round trip costs 5 to 50 us; the spin is bounded (about 50 us), so an idle policy uses
// no processor. There is no queue and no stealing: a task divides its work by worker
// number, so the same thread count always gives the same split and the same bits.
//
// A pool may have several owners (two policies that never infer at the same time share
// one), and a serial pool has no threads at all: it does every share on the caller, in turn,
// with the same split and so the same bits. No task may therefore wait for another share.
//
// Worker threads are SCHED_OTHER whatever their creator is (a FIFO creator must not lend
// its priority to seconds of arithmetic), block all signals and are named actd-pool-N.
#ifndef ACTD_POOL_H
#define ACTD_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_MAX_THREADS 64

struct pool;

// A share of the work: number `worker` of `workers`. infer; must not call pool_run and must
// not wait for another share.
typedef void (*pool_task)(void *arg, int worker, int workers);

// Starts threads - 1 workers, which may run on the cores of cpu_mask only (0 = any). Where it names
// at least as many usable cores as there are threads, each has one to itself: worker i the i-th, and
// the first is left to the caller, whose owner may pin it there. (A thread that stays finds its part
// of the weights in its core's cache, and none waits for two that the kernel put on one core.) With
// fewer they share them all. *out is the caller's to pool_stop. plain. 0, -EINVAL for a count outside
// 1..POOL_MAX_THREADS or a mask without a usable core, -ENOMEM, -EAGAIN.
int pool_start(struct pool **out, int threads, uint64_t cpu_mask);

// The same without threads: pool_run does the shares 0 to threads - 1 one after the other on
// the calling thread. *out is the caller's to pool_stop. plain. 0, -EINVAL, -ENOMEM.
int pool_start_serial(struct pool **out, int threads);

// One owner more, who owes a pool_stop. plain; the pool must have an owner already, who keeps
// it meanwhile. Returns p.
struct pool *pool_hold(struct pool *p);

// Runs task on all threads, this one included, and waits for all. infer; one caller at a
// time; allocates nothing. What the caller wrote before is visible to the task, and what
// the task wrote is visible to the caller afterwards.
void pool_run(struct pool *p, pool_task task, void *arg);

int pool_threads(const struct pool *p);

// One owner less; the last one joins the workers and frees the pool. plain. NULL is fine.
void pool_stop(struct pool *p);

// The share [*begin, *end) of n units that `worker` of `workers` takes: contiguous,
// differing by at most one unit, empty when there are more workers than units.
void pool_share(size_t n, int worker, int workers, size_t *begin, size_t *end);

#endif
