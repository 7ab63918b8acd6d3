// monitor: the loop watched from another thread. It looks at the loop's tick counter every few
// milliseconds; when that has not moved for too long it cuts the output: board->stalls goes up,
// and the bus drops every command that the loop made before it has seen the new number. The loop,
// should it come back, finds the number changed and stops the arm. While the loop is stuck the
// service manager hears nothing (monitor_fine), so its watchdog ends the process.
//
// A monitor that was away itself (the process was suspended, the machine was) can not tell a loop
// that is stuck from one that was away with it. So what counts is the time in which somebody
// watched: a look that comes late counts as half the limit at most. A healthy loop, whose
// deadline has passed by then, ticks before the other half is over and judges its own gap
// (REASON_TICK_GAP); one that was stuck before and still is does not get away with it, however
// often the monitor is kept away.
//
// The thread is class io at a priority above the loop's: a loop that spins must not keep it away.
#ifndef ACTD_MONITOR_H
#define ACTD_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/clock.h"

#define MONITOR_LIMIT_NS (100 * NS_PER_MS) // from the last tick to the cut, all in all
#define MONITOR_LOOK_NS  (10 * NS_PER_MS)
#define MONITOR_AWAY_NS  (200 * NS_PER_MS) // without a look: the monitor is gone itself

// The judgement, pure: any thread class, virtual clocks included. All zero at first.
struct monitor_state {
    uint64_t ticks; // as last seen
    ns_t looked_ns; // when that was, 0 = never
    ns_t still_ns;  // watched since the look that saw the last tick
    bool stalled;   // for the limit or longer; also of a loop that has not begun
};
// One look. True when the loop has just been found stalled: once per stall, and not of a loop
// that has not begun (ticks == 0), of which there is nothing to cut. limit_ns counts from the
// last look that saw a tick, which may be MONITOR_LOOK_NS after that tick.
bool monitor_look(struct monitor_state *s, uint64_t ticks, ns_t now, ns_t limit_ns);

// How long without a tick is a stall, the time between looks taken off twice (one before the
// tick is seen, one until the limit is): MONITOR_LIMIT_NS in all for any loop of 30 Hz or more,
// three periods for a slower one. Pure; any thread class.
ns_t monitor_limit_ns(ns_t period_ns);

// The thread that watches, logs and publishes is SCHED_OTHER: a machine full of work may keep it
// away for a second or two, which is no reason to end a process whose loop ticks. For longer is.
#define MONITOR_ALIVE_NS (5 * NS_PER_S)

struct monitor;
struct watchdog;
// plain. Starts the thread, one above the loop's priority (0 = no FIFO asked) where that is
// granted, else at the loop's. The board must outlive it. 0 or -errno.
int monitor_start(struct monitor **out, struct board *board, ns_t period_ns,
                  int priority);
void monitor_stop(struct monitor *m); // plain; NULL is fine

// plain, once. From now on the monitor pings the service manager (watchdog_ping), and nobody
// else does: while monitor_fine would be true, and *alive_ns (CLOCK_MONOTONIC, as of when the
// watching thread last came by) is younger than MONITOR_ALIVE_NS. Both must outlive the monitor.
void monitor_ping(struct monitor *m, struct watchdog *dog,
                  const _Atomic int64_t *alive_ns);

// Any thread class. The loop ticks, and the monitor itself has looked within MONITOR_AWAY_NS.
bool monitor_fine(const struct monitor *m);

#endif
