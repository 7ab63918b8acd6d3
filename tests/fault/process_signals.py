"""Signals: what ends the process, stops it, or must not bother it."""
import re
import signal
import time

from process_kit import (BLIND_STALLS, BLIND_TICK_GAP, PERIOD, ends, mode, need, reason, row, running,
                         speed)


def ramps_down(place, number):
    with running(place) as (actd, ear):
        actd.send_signal(number)
        took = ends(actd, 3, 0)
        time.sleep(0.2)
        last = ear.last()
        need(speed(last) == 0, f"the last command still moves, {speed(last):.3f} rad/s")
    return took, f"ramp to rest, exit 0, last {mode(last)[5:]}", reason(last)


@row("SIGTERM", "exit 0 in 3 s, at rest")
def sigterm(place):
    return ramps_down(place, signal.SIGTERM)


@row("SIGINT", "exit 0 in 3 s, at rest")
def sigint(place):
    return ramps_down(place, signal.SIGINT)


@row("SIGHUP", "ignored")
def sighup(place):
    with running(place) as (actd, ear):
        n = len(ear.heard)
        for _ in range(20):
            actd.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        time.sleep(0.4)
        need(actd.poll() is None, "it ended")
        need(len(ear.heard) - n > 20 and mode(ear.last()) == "MODE_RUNNING",
             f"it went {mode(ear.last())} ({reason(ear.last())})")
    return 0, "goes on", "NONE"


def dies(place, kill, prefix=()):
    with running(place, prefix=prefix) as (actd, ear):
        kill(actd)
        need(actd.wait(30) < 0, "no signal ended it")
        time.sleep(1)
        ttl = ear.last().time_to_live_ns / 1e6
    place.processes[0].terminate()
    place.processes[0].wait()
    need(re.search(r" [1-9][0-9]* stops since a command.s time to live ran out", place.log("sim.log")),
         "the driver did not stop by itself")
    place.robot()
    again = place.actd(log="again.log")
    place.until_logged(" READY", 20, "again.log")
    time.sleep(1)
    need(not re.search("APPROACH|RUNNING", place.log("again.log")), "it came back armed")
    again.terminate()
    ends(again, 5, 0)
    return ttl / 1000, "driver stops by time to live; back disarmed", "-"


@row("SIGKILL", "time to live; back disarmed")
def sigkill(place):
    return dies(place, lambda actd: actd.send_signal(signal.SIGKILL))


@row("SIGSEGV, as of the policy's thread", "time to live; back disarmed")
def sigsegv(place):
    return dies(place, lambda actd: actd.send_signal(signal.SIGSEGV))


@row("SIGABRT, as of a library", "time to live; back disarmed")
def sigabrt(place):
    return dies(place, lambda actd: actd.send_signal(signal.SIGABRT))


@row("SIGSTOP for 1 s", "skip, no burst, fault and no jump", [BLIND_TICK_GAP, BLIND_STALLS],
     r"^stopped for ")
def sigstop(place):
    with running(place) as (actd, ear):
        actd.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        time.sleep(1)
        before = ear.heard[-1]
        actd.send_signal(signal.SIGCONT)
        away = time.monotonic() - begin
        time.sleep(1)
        after = [x for x in ear.heard if x[1].sequence > before[1].sequence]
        need(len(after) > 5, "nothing came any more")
        skipped = sum(b[1].tick - a[1].tick - 1 for a, b in zip([before] + after, after))
        need(abs(skipped * PERIOD - away) < 0.25, f"{skipped} ticks skipped in {away:.2f} s")
        burst = [b[1].sequence for a, b in zip(after, after[2:]) if b[1].tick - a[1].tick < 2]
        need(not burst, "two commands for one tick")
        jump = max(abs(x.position - y.position) for x, y in zip(before[1].joints, after[0][1].joints))
        need(jump <= 3.0 * PERIOD * 1.01, f"a jump of {jump:.3f} rad")
        why = {reason(m) for _, m in after if mode(m) in ("MODE_STOPPING", "MODE_STOPPED")}
        need(why & {"TICK_GAP", "LOOP_STALLED"}, f"stopped for {why}")
    return away, f"{skipped} ticks skipped, STOPPED", "/".join(sorted(why))
