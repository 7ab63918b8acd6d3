#!/usr/bin/python3
"""Faults of whole processes: real binaries, the machine's own time, so the gates are loose.

    process.py BUILD [--only PART] [--tap]        each fault once
    process.py BUILD --blind [...]                with its detectors off: BUILD/blind/tests/fault/actd

One line per fault: injected, detected after, bound, action, reason, verdict. Run from the top of
the tree; the protobuf modules are made there. Ends only the processes that it began.
"""
import argparse
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import zmq

from process_kit import (PERIOD, ROWS, SLOW, Place, Problem, ends, mode, need, reason, row, running,
                         speed)

# daemon/blind.h
BLIND_TICK_GAP, BLIND_STALLS, BLIND_BUDGETS = 28, 29, 30
BLIND_LOCK, BLIND_WEIGHTS, BLIND_CONFIG, BLIND_DISK = 40, 41, 42, 43
TIME = [BLIND_TICK_GAP, BLIND_STALLS, BLIND_BUDGETS]
TRIES = 3  # a busy machine keeps the simulated robot waiting, which is a fault of its own


# ---- signals ---------------------------------------------------------------------------------


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


def dies(place, number):
    with running(place) as (actd, ear):
        actd.send_signal(number)
        actd.wait()
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
    return dies(place, signal.SIGKILL)


@row("SIGSEGV, as of the policy's thread", "time to live; back disarmed")
def sigsegv(place):
    return dies(place, signal.SIGSEGV)


@row("SIGABRT, as of a library", "time to live; back disarmed")
def sigabrt(place):
    return dies(place, signal.SIGABRT)


@row("SIGSTOP for 1 s", "skip, no burst, fault and no jump", [BLIND_TICK_GAP, BLIND_STALLS])
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


# ---- other processes -------------------------------------------------------------------------


@row("a second daemon", "exit 69, the first untouched", [BLIND_LOCK])
def two_daemons(place):
    with running(place) as (actd, ear):
        second = place.actd(log="second.log")
        took = ends(second, 10, 69)
        said = place.log("second.log")
        need(str(actd.pid) in said, f"it does not name the first: {said[-160:]!r}")
        n = len(ear.heard)
        time.sleep(0.5)
        need(len(ear.heard) - n > 10 and actd.poll() is None, "the first one fell silent")
    return took, "refused, names the first", "-"


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@row("a subscriber that never reads", "no growth, no silence")
def slow_subscriber(place):
    with running(place) as (actd, ear):
        deaf = []
        for _ in range(10):  # at their own mark they read nothing more
            s = zmq.Context.instance().socket(zmq.SUB)
            s.setsockopt(zmq.RCVHWM, 1)
            s.setsockopt(zmq.RCVBUF, 4096)
            s.setsockopt(zmq.LINGER, 0)
            s.setsockopt(zmq.SUBSCRIBE, b"")
            s.connect(f"ipc://{place.runtime}/joints.command")
            deaf.append(s)
        time.sleep(2)
        before, n = resident(actd.pid), len(ear.heard)
        time.sleep(4)
        grown, more = resident(actd.pid) - before, len(ear.heard) - n
        for s in deaf:
            s.close()
        need(grown < 4 << 20, f"grew by {grown >> 10} KiB")
        need(more > 4 / PERIOD / 2, f"only {more} commands in 4 s")
        need(mode(ear.last()) == "MODE_RUNNING", f"it went {mode(ear.last())} ({reason(ear.last())})")
    return 0, f"goes on, grew {grown >> 10} KiB", "NONE"


@row("peers that vanish in the middle of a message", "no effect, 500 of them")
def vanishing_peers(place):
    with running(place) as (actd, ear):
        greeting = b"\xff" + b"\0" * 7 + b"\x01\x7f\x03\x01NULL" + b"\0" * 48
        for i in range(500):
            s = socket.socket(socket.AF_UNIX)
            s.connect(f"{place.runtime}/{('joints.state', 'camera.front', 'joints.command')[i % 3]}")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.send(greeting[:1 + i % 64])
                if i % 2:  # a long frame begins, and its end never comes
                    s.send(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB\x02\0\0\0\0\0\x10\0\0abc")
            s.close()
        time.sleep(1)
        need(actd.poll() is None, "it died")
        need(mode(ear.last()) == "MODE_RUNNING", f"it went {mode(ear.last())} ({reason(ear.last())})")
    return 0, "goes on", "NONE"


@row("stderr is a pipe that nobody reads", "no effect on the loop")
def full_pipe(place):
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    with running(place, stderr=write) as (actd, ear):
        os.close(write)
        place.processes[0].send_signal(signal.SIGSTOP)  # a fault to be told
        time.sleep(1.5)
        m = ear.last()
        need(mode(m) == "MODE_STOPPED" and time.monotonic() - ear.heard[-1][0] < 0.5 * SLOW,
             f"it fell silent, {mode(m)}")
        place.processes[0].send_signal(signal.SIGCONT)
    os.close(read)
    return 0, "HOLD STOPPING STOPPED as ever", reason(m)


# ---- limits and surroundings -----------------------------------------------------------------


def limited(what, amount):
    return lambda: resource.setrlimit(what, (amount, amount))


@row("address space of 150 MB", "refused in 5 s, no hang")
def address_space(place):
    a = place.actd(preexec_fn=limited(resource.RLIMIT_AS, 150 << 20))
    before = time.monotonic()
    try:
        status = a.wait(5 * SLOW)
    except subprocess.TimeoutExpired:
        raise Problem("it hangs") from None
    need(status > 0, f"exit {status}")
    need(len(place.log()) > 10, "it says nothing")
    return time.monotonic() - before, f"exit {status}", "-"


@row("memory can not be locked, require_rt", "refused with the remedy")
def memory_lock(place):
    config = place.write_config("strict.yaml", lambda t: t.replace("control:", "control:\n  require_rt: true"))
    prefix = ("setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock") if os.geteuid() == 0 else ()
    a = place.actd(config=config, preexec_fn=limited(resource.RLIMIT_MEMLOCK, 4096),
                   prefix=prefix)
    took = ends(a, 15, 71)
    need("RLIMIT_MEMLOCK" in place.log(), f"it does not say so: {place.log()[-160:]!r}")
    return took, "exit 71, names LimitMEMLOCK", "-"


@row("NOTIFY_SOCKET bad or abstract", "runs all the same")
def notify_socket(place):
    took = 0
    for value in ("/nonexistent/notify", "@actd-nobody-there", "", "relative"):
        a = place.actd(env={"NOTIFY_SOCKET": value}, log="actd.log")
        place.until_logged("loop: ", 10)
        time.sleep(0.3)
        need(a.poll() is None, f"it died of NOTIFY_SOCKET={value}: {place.log()[-100:]!r}")
        a.terminate()
        took = max(took, ends(a, 5, 0))
    return took, "runs, ends with 0", "-"


@contextlib.contextmanager
def hogs(n):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for p in busy:
            p.kill()
            p.wait()


@row("two busy hogs for 3 s", "no burst, or a fault of its name")
def starved(place):
    with running(place) as (actd, ear):
        with hogs(2):
            n = len(ear.heard)
            time.sleep(3)
        got = [m for _, m in ear.heard[n:]]
        need(actd.poll() is None and len(got) > 20, "it died or fell silent")
        ticks = [m.tick for m in got]
        need(all(a < b for a, b in zip(ticks, ticks[1:])), "two commands for one tick")
        m = ear.last()
        need(mode(m) == "MODE_RUNNING" or reason(m) != "NONE", "a stop without a reason")
    return 0, mode(m)[5:], reason(m)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


@contextlib.contextmanager
def group(pid, settings):
    """The process in a cgroup of its own (v1, cpu); None where there is no such thing."""
    root, mine = "/sys/fs/cgroup/cpu", f"/sys/fs/cgroup/cpu/actd-fault-{os.getpid()}"
    made = False
    try:
        os.mkdir(mine)
        made = True
        for key, value in settings:
            write(f"{mine}/{key}", value)
        write(f"{mine}/cgroup.procs", str(pid))
    except OSError as e:
        yield None, f"not on this machine ({e.strerror})"
    else:
        yield mine, ""
    finally:
        if made:
            with contextlib.suppress(OSError):
                write(f"{root}/cgroup.procs", str(pid))
            with contextlib.suppress(OSError):
                os.rmdir(mine)


def held_back(place, settings, prepare=lambda actd: None):
    """Held back for 3 s: it must stop, say why, and send no burst afterwards."""
    with running(place) as (actd, ear):
        prepare(actd)
        begin = time.monotonic()
        with group(actd.pid, settings) as (path, why_not):
            if not path:
                return None, why_not, "-"
            time.sleep(3)
        time.sleep(0.5 * SLOW)
        heard = [(at, m) for at, m in ear.heard if at > begin]
        stops = [(at, m) for at, m in heard if mode(m) in ("MODE_STOPPING", "MODE_STOPPED")]
        need(stops, f"it did not stop: {mode(ear.last())}")
        need(reason(stops[0][1]) in ("TICK_GAP", "LOOP_STALLED", "LATE_WAKEUPS"),
             f"stopped for {reason(stops[0][1])}")
        ticks = [m.tick for _, m in heard]
        need(all(a < b for a, b in zip(ticks, ticks[1:])), "two commands for one tick")
    return stops[0][0] - begin, "STOPPED", reason(stops[0][1])


def ordinary(actd):
    """A quota holds back ordinary threads only."""
    for task in glob.glob(f"/proc/{actd.pid}/task/*"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(task.split("/")[-1]), os.SCHED_OTHER, os.sched_param(0))


@row("CPU quota of 2 %", "a fault of its name, no burst", TIME)
def quota(place):
    return held_back(place, (("cpu.cfs_period_us", "200000"), ("cpu.cfs_quota_us", "4000"),
                             ("cpu.rt_runtime_us", "1000")), ordinary)


@row("real-time threads throttled", "a fault of its name, no burst", TIME)
def throttled(place):
    return held_back(place, (("cpu.rt_period_us", "1000000"), ("cpu.rt_runtime_us", "500")))


@row("black box on a full disk", "told; the loop goes on", [BLIND_DISK])
def disk_full(place):
    os.mkdir(place.box)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", place.box],
                      capture_output=True).returncode:
        return None, "not on this machine (no tmpfs)", "-"
    try:
        with running(place) as (actd, ear):
            place.processes[0].send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            place.until_logged("black box", 5)
            took = time.monotonic() - begin
            n = len(ear.heard)
            time.sleep(0.5)
            need(len(ear.heard) - n > 10, "the loop fell silent")
            need(not glob.glob(f"{place.box}/*.part"), "a part of a file is left")
            place.processes[0].send_signal(signal.SIGCONT)
            m = ear.last()
    finally:
        for p in place.processes[1:]:
            p.kill()
            p.wait()
        subprocess.run(["umount", place.box], check=True)
    return took, "STOPPED, told", reason(m)


# ---- files -----------------------------------------------------------------------------------


def spoilt(place, name, spoil):
    """A copy of the policy in which `spoil` has changed the bytes of the weights."""
    copy = os.path.join(place.dir, name)
    shutil.copytree("config/policies/reach", copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    with open(path, "wb") as f:
        f.write(spoil(data))
    return place.write_config(name + ".yaml", policy=copy)


def cut(data):
    return data[:len(data) // 2]


def not_numbers(data):
    dtype = re.search(rb'"dtype":"(\w+)"', data).group(1)
    width = 4 if dtype == b"F32" else 2
    data[-width:] = b"\xff" * width
    return data


def other_names(data):
    return data.replace(b"model.action_head", b"model.acxion_head")


def hostile(data):
    return (1 << 63).to_bytes(8, "little") + data[8:]


@row("weights cut, hostile, misnamed, not finite", "check and run: exit 78", [BLIND_WEIGHTS])
def weights(place):
    most = 0.0
    for name, spoil in (("cut", cut), ("nan", not_numbers), ("names", other_names), ("hostile", hostile)):
        config = spoilt(place, name, spoil)
        for command in ("check", "run"):
            a = place.start(f"{place.build}/actd", command, "-c", config, log="actd.log")
            most = max(most, ends(a, 10, 78))
            need("model.safetensors" in place.log() or "action_head" in place.log() or
                 "tensor" in place.log(), f"{name}: it does not say: {place.log()[-160:]!r}")
    return most, "8 times exit 78", "-"


@row("every mistake in a configuration", "exit 78 with line and column", [BLIND_CONFIG])
def configs(place):
    n, begin = 0, time.monotonic()
    for path in sorted(glob.glob("tests/data/config/*.yaml")):
        if os.path.basename(path).startswith("policy_"):
            continue
        mine = os.path.join(place.dir, os.path.basename(path))
        shutil.copy(path, mine)
        os.chmod(mine, 0o600)
        a = subprocess.run([f"{place.build}/actd", "check", "-c", mine], capture_output=True,
                           text=True, env={**os.environ, **place.environment}, timeout=20 * SLOW)
        with open(path, errors="replace") as f:
            where = f.readline().split()[2]
        need(a.returncode == 78, f"{os.path.basename(path)}: exit {a.returncode}")
        need(f"{os.path.basename(path)}:{where}" in a.stderr + a.stdout,
             f"{os.path.basename(path)}: not where: {a.stderr[:100]!r}")
        n += 1
    return (time.monotonic() - begin) / n, f"{n} times exit 78", "-"


# ---- all of them -----------------------------------------------------------------------------


def attempt(build, function, environment):
    place = Place(build, environment)
    try:
        return function(place), None
    except Problem as e:
        return (None, "", "-"), str(e)
    except Exception as e:  # a row that can not be run has failed
        return (None, "", "-"), f"{type(e).__name__}: {e}"
    finally:
        place.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--only", default="")
    p.add_argument("--blind", action="store_true")
    p.add_argument("--tap", action="store_true")
    o = p.parse_args()
    python = tempfile.mkdtemp(prefix="actd-fault-py.")
    subprocess.run(["protoc", "-Iproto", f"--python_out={python}", *glob.glob("proto/actd/v1/*.proto")],
                   check=True)
    sys.path.insert(0, python)
    n = good = 0
    print("\nwhole processes" if not o.tap else "")
    for name, bound, detector, function in ROWS:
        if o.only not in name or (o.blind and detector is None):
            continue
        environment = {"ACTD_BLIND": str(sum(1 << d for d in detector))} if o.blind else {}
        for tries in range(1, 2 if o.blind else TRIES + 1):
            (took, action, why), problem = attempt(os.path.abspath(o.build), function, environment)
            if not problem:
                break
        if not problem and action.startswith("not on this machine"):
            print(f"{name:44} # SKIP {action}")
            continue
        as_it_must = (problem is not None) == o.blind
        n, good = n + 1, good + as_it_must
        if o.tap:
            print(f"{'ok' if as_it_must else 'not ok'} {n} - {name}" + (f" # {problem}" if problem else ""))
        elif o.blind:
            print(f"{name:44} without detector {'+'.join(map(str, detector)):8} "
                  f"{'blind: fails as it must' if as_it_must else 'STILL PASSES':28} {(problem or '')[:70]}")
        else:
            took = "-" if took is None else f"{took:.2f} s"
            print(f"{name:44} {took:>13}          {action:44.44} {why:20.20} {bound:34.34} "
                  f"{'ok' if as_it_must else 'FAILED'}" + (f" (in try {tries})" if tries > 1 else ""))
            if problem:
                print(f"    {problem}")
        sys.stdout.flush()
    shutil.rmtree(python)
    print(f"{n} faults of processes: {good} {'fail without their detector' if o.blind else 'as they must'}")
    sys.exit(0 if n and good == n else 1)


if __name__ == "__main__":
    main()
