"""Stops the loop's thread of an actd and listens: ACTD CONFIG RUNTIME. Prints TAP.

A SIGSTOP stops a process as a whole; ptrace stops one thread, and the rest of actd goes on.
"""
import ctypes
import glob
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zmq
from actd.v1.joint_command_pb2 import JointCommand, Mode, Reason
from actd.v1.status_pb2 import Status

ACTD, CONFIG, RUNTIME = sys.argv[1:]
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
PERIOD, STUCK = 0.01, 2.0
VELOCITY = 3.0  # rad/s, the limit of every joint in reach.yaml
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
tests = 0


def ok(what, holds):
    global tests
    tests += 1
    print(f"{'ok' if holds else 'not ok'} {tests} - {what}", flush=True)
    return holds


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


class Daemon:
    """An actd, what it sends and what it logs."""

    def __init__(self, *options, environment=None):
        self.log = os.path.join(RUNTIME, "..", "actd.log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [ACTD, "run", "-c", CONFIG, *options], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, **(environment or {})})
        self.commands, self.statuses = [], []  # (receipt, message)
        self.sockets = {}
        for name, kind, into in (("joints.command", JointCommand, self.commands),
                                 ("status", Status, self.statuses)):
            s = zmq.Context.instance().socket(zmq.SUB)
            s.setsockopt(zmq.LINGER, 0)
            s.setsockopt(zmq.SUBSCRIBE, b"")
            s.connect(f"ipc://{RUNTIME}/{name}")
            self.sockets[s] = (kind, into)
        self.poller = zmq.Poller()
        for s in self.sockets:
            self.poller.register(s, zmq.POLLIN)

    def listen(self, seconds, until=lambda: False):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            for s, _ in self.poller.poll(20):
                at, (kind, into) = time.monotonic(), self.sockets[s]
                into.append((at, kind.FromString(s.recv())))
        return until()

    def logged(self, pattern):
        with open(self.log) as log:
            return re.search(pattern, log.read()) is not None

    def newest_status(self):
        """One that is made from now on."""
        seen = len(self.statuses)
        self.listen(5, lambda: len(self.statuses) >= seen + 2)
        return self.statuses[-1][1]

    def mode(self):
        return Mode.Name(self.commands[-1][1].mode) if self.commands else None

    def loop_thread(self):
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/comm"):
            with open(path) as comm:
                if comm.read().strip() == "actd-loop":
                    return int(path.split("/")[4])
        raise LookupError("no thread is called actd-loop")

    def stuck(self, seconds):
        """When the loop's thread was stopped and when it went on."""
        tid = self.loop_thread()
        ptrace(SEIZE, tid)
        try:
            ptrace(INTERRUPT, tid)
            os.waitpid(tid, WALL)
            begin = time.monotonic()
            self.listen(seconds)
        finally:
            end = time.monotonic()
            ptrace(DETACH, tid)
        return begin, end

    def end(self):
        for s in self.sockets:
            s.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def step(a, b):
    return max(abs(x.position - y.position) for x, y in zip(a.joints, b.joints))


def ahead(m):
    """How long a command was made after its tick's place in the schedule, but for a constant."""
    return m.timestamp.ToNanoseconds() * 1e-9 - m.tick * PERIOD


def comes_back(d, end):
    """No burst and no jump after `end`, whatever the time away."""
    at_before, before = [x for x in d.commands if x[0] < end][-1]
    after = [(at, m) for at, m in d.commands if at >= end]
    ticks = [m.tick for _, m in after]
    ok("one command a tick", all(a < b for a, b in zip(ticks, ticks[1:])))
    # By its own stamp: when it is received depends on how busy the machine is.
    due = min(ahead(m) for at, m in d.commands if at < end)
    early = min(ahead(m) for _, m in after) - due
    ok(f"none before its time, so no burst: {1000 * early:+.2f} ms", early > -0.001)
    # The tick it was asleep for comes late, as itself; then those that have passed are skipped.
    away, skipped = end - at_before, (ticks[1] - before.tick) * PERIOD
    ok(f"skipped, not caught up: {skipped:.2f} s of ticks in {away:.2f} s",
       ticks[0] == before.tick + 1 and abs(skipped - away) < 0.2)
    ok("goes on from the last command",
       step(before, after[0][1]) <= 1.01 * VELOCITY * PERIOD)


def stuck_in_motion():
    d = Daemon("--arm")
    try:
        if not ok("runs", d.listen(60, lambda: d.mode() == "MODE_RUNNING")):
            return
        d.listen(1)
        begin, end = d.stuck(STUCK)
        last = [at for at, _ in d.commands if at < end][-1] - begin
        ok(f"the loop is stuck: the last command came {1000 * last:+.0f} ms after", last < 0.1)
        ok("told while it is stuck", d.logged("the monitor cut the output"))
        d.listen(2)
        comes_back(d, end)
        after = [m for at, m in d.commands if at >= end]
        ok("the first command is that of a stop: " + Mode.Name(after[0].mode),
           Mode.Name(after[0].mode) in ("MODE_STOPPING", "MODE_STOPPED"))
        ok("whose reason is LOOP_STALLED: " + Reason.Name(after[0].reason),
           all(Reason.Name(m.reason) == "REASON_LOOP_STALLED" for m in after))
        s = d.newest_status()
        ok("STOPPED in status", Mode.Name(s.mode) == "MODE_STOPPED")
        ok(f"cut once: {s.stalls}", s.stalls == 1)
        latched = [Reason.Name(f.reason) for f in s.faults if f.latched]
        ok(f"latched: {latched}", "REASON_LOOP_STALLED" in latched)
        d.listen(1)
        ok("stays STOPPED", d.mode() == "MODE_STOPPED")
        ok("ends on SIGTERM, exit 0", d.end() == 0)
    finally:
        d.kill()


def suspended_in_motion():
    d = Daemon("--arm")
    try:
        if not ok("runs again", d.listen(60, lambda: d.mode() == "MODE_RUNNING")):
            return
        d.listen(1)
        d.process.send_signal(signal.SIGSTOP)
        d.listen(0.5)
        d.process.send_signal(signal.SIGCONT)
        end = time.monotonic()
        d.listen(2)
        comes_back(d, end)
        reasons = {Reason.Name(m.reason) for at, m in d.commands if at >= end}
        ok(f"the process was away as a whole: {reasons}", reasons == {"REASON_TICK_GAP"})
        s = d.newest_status()
        ok("which is no stall", s.stalls == 0 and Mode.Name(s.mode) == "MODE_STOPPED")
        ok("ends on SIGTERM", d.end() == 0)
    finally:
        d.kill()


class Manager:
    """A service manager's socket, read after the fact: nothing is missed up to its queue's size."""

    def __init__(self):
        self.path = os.path.join(RUNTIME, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.heard = []  # (receipt, text)

    def listen(self):
        try:
            while True:
                self.heard.append((time.monotonic(), self.socket.recv(4096).decode()))
        except BlockingIOError:
            return False  # goes on listening

    def pings(self, begin, end):
        return [at for at, text in self.heard if text == "WATCHDOG=1" and begin <= at < end]


def stuck_under_a_manager():
    m = Manager()
    d = Daemon(environment={"NOTIFY_SOCKET": m.path, "WATCHDOG_USEC": "1000000"})
    hear = d.listen
    d.listen = lambda seconds, until=lambda: False: hear(seconds, lambda: m.listen() or until())
    try:
        if not ok("says READY=1", d.listen(60, lambda: any("READY=1" in t for _, t in m.heard))):
            return
        ready = time.monotonic()
        d.listen(3)
        pings = m.pings(ready, time.monotonic())
        gaps = [b - a for a, b in zip([ready] + pings, pings + [time.monotonic()])]
        ok(f"pings: {len(pings)} in 3 s, {1000 * max(gaps):.0f} ms apart at most",
           max(gaps) <= 0.5 and len(pings) <= 15)
        begin, end = d.stuck(STUCK)
        m.listen()
        pings = m.pings(begin + 0.15, end)  # a look of watch after the cut
        ok(f"stuck: {len(pings)} pings, which ends the process within a second", not pings)
        d.listen(1.5)
        pings = m.pings(end, end + 0.5)
        ok("back: pings again", len(pings) >= 1)
        ok("ends on SIGTERM", d.end() == 0)
        m.listen()
        ok("and says so", any("STOPPING=1" in text for _, text in m.heard))
    finally:
        d.kill()


try:
    stuck_in_motion()
    suspended_in_motion()
    stuck_under_a_manager()
except PermissionError:
    print(f"ok {tests + 1} - stall # SKIP this machine does not let ptrace stop a thread")
