"""Limits and surroundings: memory, the service manager's socket, time on the processor."""
import contextlib
import glob
import os
import resource
import signal
import subprocess
import sys
import time

from process_kit import BLIND_TIME, SLOW, Problem, ends, mode, need, reason, row, running
from process_signals import dies


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
        why = {reason(m) for m in got}
        need(why <= STARVED, f"for {why - STARVED}")
    return 0, mode(m)[5:], reason(m)


# What two hogs may bring about: the loop is late itself, or what it waits for is. Nothing of what
# is in a message, and nothing of actd's own.
STARVED = {"NONE", "TICK_GAP", "LOOP_STALLED", "LATE_WAKEUPS", "SLOW_TICKS", "OLD_SENSORS", "LATE_CHUNKS",
           "JOINTS_STALE", "CAMERA_STALE", "POLICY_SLOW", "CHUNK_TOO_OLD", "NO_CHUNK", "FOLLOWING_ERROR"}


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


@row("CPU quota of 2 %", "a fault of its name, no burst", BLIND_TIME,
     r"^it did not stop|^stopped for ")
def quota(place):
    return held_back(place, (("cpu.cfs_period_us", "200000"), ("cpu.cfs_quota_us", "4000"),
                             ("cpu.rt_runtime_us", "1000")), ordinary)


@row("real-time threads throttled", "a fault of its name, no burst", BLIND_TIME,
     r"^it did not stop|^stopped for ")
def throttled(place):
    return held_back(place, (("cpu.rt_period_us", "1000000"), ("cpu.rt_runtime_us", "500")))


@contextlib.contextmanager
def memory_group(limit):
    """A cgroup (v1, memory) of so many bytes; None where there is no such thing."""
    mine = f"/sys/fs/cgroup/memory/actd-fault-{os.getpid()}"
    try:
        os.mkdir(mine)
    except OSError as e:
        yield None, f"not on this machine ({e.strerror})"
        return
    try:
        write(f"{mine}/memory.limit_in_bytes", str(limit))
        yield mine, ""
    finally:
        end = time.monotonic() + 5
        while time.monotonic() < end:  # the dead leave a moment later
            with contextlib.suppress(OSError):
                with open(f"{mine}/cgroup.procs") as f:
                    for pid in f.read().split():
                        os.kill(int(pid), signal.SIGKILL)
                os.rmdir(mine)
                break
            time.sleep(0.05)


# Takes what there is in the group; the kernel ends the one that has offered itself.
GREEDY = """
import sys
with open(sys.argv[1] + "/cgroup.procs", "w") as f: f.write("0")
taken = []
while True: taken.append(bytearray(b"x" * (1 << 20)))
"""


@row("a cgroup out of memory: killed by the kernel", "time to live; back disarmed")
def out_of_memory(place):
    with memory_group(400 << 20) as (path, why_not):
        if not path:
            return None, why_not, "-"
        greedy = []

        def starve(actd):
            with contextlib.suppress(OSError):
                write(f"/proc/{actd.pid}/oom_score_adj", "1000")
            greedy.append(subprocess.Popen([sys.executable, "-c", GREEDY, path], stderr=subprocess.DEVNULL))

        try:
            return dies(place, starve, ("sh", "-c", f"echo 0 >{path}/cgroup.procs; exec \"$@\"", "sh"))
        finally:
            for p in greedy:
                p.kill()
                p.wait()
