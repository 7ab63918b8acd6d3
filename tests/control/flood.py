"""Other users against the control socket of an actd that drives: ACTD_PID SOCKET. Prints TAP.

One user may look (READER), one may act (OPERATOR), one nothing (STRANGER); they are numbers,
children of root that became them. While each attack runs, the operator asks for the status ten
times a second on a connection of his own and ten times a second on a new one: every answer must
come within 1 s, and the loop's lateness, the memory of actd and what its control thread takes of
a core are held against the same numbers from right before, without an attack.

The machine may be shared with other tests, whose load comes and goes: an attack that seems to
harm is repeated, and what it really does it does again. The attackers are nice: what is tested
is what their packets do, not what anybody's endless loop does to a policy's threads.
"""
import contextlib
import glob
import mmap
import os
import select
import signal
import socket
import struct
import sys
import time

from actd.v1.control_pb2 import ControlReply, ControlRequest, Result, Verb
from actd.v1.joint_command_pb2 import Mode, Reason

PID, SOCKET = int(sys.argv[1]), sys.argv[2]
READER, OPERATOR, STRANGER = 41001, 41002, 65534
RATE = 10000
ROUNDS = 3
JUDGE = os.environ.get("SAN", "0") != "1"  # sanitizers take their own time and memory
ATTACK = float(os.environ.get("FLOOD_SECONDS", "2.5" if JUDGE else "1.5"))
LATENESS_SLACK = 150e-6
STATUS = ControlRequest(id=1, verb=Verb.VERB_STATUS).SerializeToString()
tests = 0


def ok(what, holds):
    global tests
    tests += 1
    print(f"{'ok' if holds else 'not ok'} {tests} - {what}", flush=True)
    return holds


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def as_operator():
    os.setegid(OPERATOR)
    os.seteuid(OPERATOR)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def connected(block=True):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if block:  # a timeout of Python's would make connect fail at once where there is a queue
        limit = struct.pack("ll", 1, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    else:
        s.setblocking(False)
    try:
        # The kernel keeps who connected; an attacker is somebody else for good.
        with as_operator() if os.geteuid() == 0 else contextlib.nullcontext():
            s.connect(SOCKET)
    except OSError:
        s.close()
        raise
    return s


# ---- attacks: each runs in a child of its own until it is killed; count() what was sent ------


def pace(rate):
    """Yields `rate` times a second, in bursts of 5 ms."""
    due = time.monotonic()
    while True:
        for _ in range(max(1, rate // 200)):
            yield
        due += 0.005
        time.sleep(max(0.0, due - time.monotonic()))


def requests(count, data=STATUS, sessions=4):
    """10 000 requests a second; what the socket does not take is thrown away."""
    open_ = []
    for _ in pace(RATE):
        try:
            if len(open_) < sessions:
                open_.append(connected(False))
            s = open_.pop(0)
            open_.append(s)
            count()
            s.send(data)
            s.recv(1 << 18)
        except BlockingIOError:
            pass  # its own buffer is full: nobody reads it so fast
        except OSError:
            if open_:
                open_.pop().close()


def stops(count):
    requests(count, ControlRequest(id=1, verb=Verb.VERB_ESTOP).SerializeToString())


def connects(count):
    """10 000 connections a second, each with a request, each closed at once."""
    for _ in pace(RATE):
        with contextlib.suppress(OSError):
            s = connected(False)
            count()
            s.send(STATUS)
            s.close()


def garbage(count):
    for _ in pace(RATE):
        with contextlib.suppress(OSError):
            with connected(False) as s:
                s.send(os.urandom(1 + os.urandom(1)[0]))
                count()


def large(count):
    """Packets of 64 KiB and more, and claims of a gigabyte."""
    claim = b"\x08\x01\x10\x18\x32\x80\x80\x80\x80\x04a"
    for _ in pace(2000):
        with contextlib.suppress(OSError):
            with connected(False) as s:
                s.send(claim if os.urandom(1)[0] & 1 else bytes(100000))
                count()


def half_open(count):
    """A thousand connections that say nothing, kept as long as they are let."""
    held = []
    for _ in pace(2000):
        try:
            held.append(connected(False))
            count()
        except OSError:
            pass
        if len(held) >= 1000:
            held.pop(0).close()


def deaf(count):
    """Asks and never reads."""
    held = []
    for _ in pace(RATE):
        try:
            if len(held) < 4:
                held.append(connected(False))
            s = held.pop(0)
            held.append(s)
            count()
            s.send(STATUS)
        except BlockingIOError:
            pass
        except OSError:
            if held:
                held.pop().close()


def hit_and_run(count):
    """Goes away while it is answered."""
    for _ in pace(2000):
        with contextlib.suppress(OSError):
            s = connected(False)
            s.send(STATUS)
            select.select([s], [], [], 0.0005)
            s.close()
            count()


class Attack:
    def __init__(self, function, uid, children=1):
        self.shared = mmap.mmap(-1, 8 * children)
        self.children = children
        self.pids = [self.fork(function, uid, i) for i in range(children)]

    def fork(self, function, uid, i):
        pid = os.fork()
        if pid:
            return pid
        try:
            become(uid)
            os.nice(5)
            total = [0]

            def count(n=1):
                total[0] += n
                struct.pack_into("Q", self.shared, 8 * i, total[0])

            function(count)
        finally:
            os._exit(1)

    def end(self):
        for p in self.pids:
            os.kill(p, signal.SIGKILL)
            os.waitpid(p, 0)
        return sum(struct.unpack_from("Q", self.shared, 8 * i)[0] for i in range(self.children))


# ---- what is measured -------------------------------------------------------------------------


def thread_seconds(name):
    """What the thread has taken of a core so far."""
    for stat in glob.glob(f"/proc/{PID}/task/*/stat"):
        with open(stat) as f:
            text = f.read()
        if f"({name})" in text:
            field = text.rsplit(") ", 1)[1].split()
            return (int(field[11]) + int(field[12])) / os.sysconf("SC_CLK_TCK")
    return None


def rss_kb():
    with open(f"/proc/{PID}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def descriptors():
    return len(os.listdir(f"/proc/{PID}/fd"))


def ask(s, verb=Verb.VERB_STATUS):
    s.send(ControlRequest(id=1, verb=verb).SerializeToString())
    reply = ControlReply.FromString(s.recv(1 << 18))
    if reply.result != Result.RESULT_OK:
        raise OSError(f"{Result.Name(reply.result)}: {reply.text}")
    return reply.status


def drives():
    """The operator arms it, if it does not drive: other tests' load may have stopped it."""
    end = time.monotonic() + 60
    with connected() as s:
        while time.monotonic() < end:
            mode = ask(s).mode
            if mode == Mode.MODE_RUNNING:
                return True
            with contextlib.suppress(OSError):
                if mode in (Mode.MODE_STOPPED, Mode.MODE_ESTOP):
                    ask(s, Verb.VERB_RESET)
                elif mode == Mode.MODE_READY:
                    ask(s, Verb.VERB_ARM)
            time.sleep(0.2)
    return False


class Operator:
    """The client that behaves."""

    def __init__(self):
        self.kept = None

    def once(self, new):
        """(seconds, status or None)"""
        begin = time.monotonic()
        try:
            if new:
                with connected() as s:
                    status = ask(s)
            else:
                self.kept = self.kept or connected()
                status = ask(self.kept)
        except OSError as e:
            print(f"# not answered: {e}")
            self.kept, status = None, None
        return time.monotonic() - begin, status

    def watch(self, seconds):
        """(worst answer, failures, statuses)"""
        worst, failures, seen = 0.0, 0, []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for new in (False, True):
                took, status = self.once(new)
                worst = max(worst, took)
                failures += status is None
                if status:
                    seen.append(status)
            time.sleep(0.1)
        return worst, failures, seen


def measure(operator, seconds):
    rss, cpu, begin = rss_kb(), thread_seconds("actd-control"), time.monotonic()
    worst, failures, seen = operator.watch(seconds)
    # As of the last whole second: the first still holds what was before.
    late = {(h.p99_ns, h.max_ns) for h in (s.second_lateness for s in seen) if h.count}
    first = seen[0].second_lateness if seen else None
    late.discard((first.p99_ns, first.max_ns) if first else None)
    p99 = sorted(p for p, _ in late)
    return {
        "answer": worst,
        "failures": failures,
        "p99": p99[len(p99) // 2] * 1e-9 if p99 else 0.0,
        "max": max((m for _, m in late), default=0) * 1e-9,
        "skipped": seen[-1].skipped_ticks - seen[0].skipped_ticks if seen else 10**9,
        "running": sum(s.mode == Mode.MODE_RUNNING for s in seen) / max(1, len(seen)),
        # A policy starved by other tests' load may stop by itself; only a request stops so.
        "asked": any(s.reason in (Reason.REASON_OPERATOR, Reason.REASON_ESTOP) for s in seen),
        "rss": rss_kb() - rss,
        "cpu": (thread_seconds("actd-control") - cpu) / (time.monotonic() - begin),
        "fds": descriptors(),
    }


def show(name, m, sent=None):
    print(f"# {name:34s} answer {m['answer'] * 1e3:6.1f} ms  lateness p99 {m['p99'] * 1e6:6.0f} us "
          f"max {m['max'] * 1e6:6.0f} us  skipped {m['skipped']}  rss {m['rss']:+d} kB  "
          f"thread {m['cpu'] * 100:4.1f} %  fds {m['fds']}  running {m['running'] * 100:3.0f} %"
          + (f"  sent {sent / ATTACK:.0f}/s" if sent is not None else ""), flush=True)


ATTACKS = [
    ("requests by one who may look", requests, READER, 1),
    ("requests by two processes of his", requests, READER, 2),
    ("requests by one who may nothing", requests, STRANGER, 1),
    ("ESTOPs by one who may look", stops, READER, 1),
    ("connections by one who may look", connects, READER, 1),
    ("connections by one who may nothing", connects, STRANGER, 1),
    ("garbage", garbage, READER, 1),
    ("64 KiB packets, 1 GB claims", large, READER, 1),
    ("1000 half-open by one who may look", half_open, READER, 1),
    ("1000 half-open by one without right", half_open, STRANGER, 1),
    ("asks and never reads", deaf, READER, 1),
    ("goes away in mid reply", hit_and_run, READER, 1),
]


def harm(m, quiet):
    """What an attack has done, by name."""
    found = {
        "the operator is answered within 1 s": m["failures"] == 0 and m["answer"] < 1.0,
        "the loop is not later":
            m["p99"] <= quiet["p99"] * 1.5 + LATENESS_SLACK and m["skipped"] <= quiet["skipped"],
        "actd does not grow": m["rss"] < 2048 and m["fds"] <= quiet["fds"] + 16,
        "its thread takes less than a fifth of a core": m["cpu"] < 0.2,
        "it has stopped nothing": not m["asked"],
    }
    return found if JUDGE else dict(list(found.items())[:1])


def attacked(name, function, uid, children, operator):
    """What held in any of the rounds."""
    held = {}
    for _ in range(ROUNDS):
        drives()
        quiet = measure(operator, ATTACK if JUDGE else 0.2)  # not compared with otherwise
        attack = Attack(function, uid, children)
        time.sleep(0.2)
        m = measure(operator, ATTACK)
        sent = attack.end()
        show("(before)", quiet)
        show(name, m, sent)
        for what, good in harm(m, quiet).items():
            held[what] = held.get(what, False) or good
        if all(held.values()):
            break
        time.sleep(1)  # buckets fill again
    return held


def main():
    operator = Operator()
    ok("the operator arms it, and it drives", drives())
    quiet = measure(operator, ATTACK)
    ok("answered while nobody attacks", quiet["failures"] == 0 and quiet["answer"] < 1.0)
    for name, function, uid, children in ATTACKS:
        for what, good in attacked(name, function, uid, children, operator).items():
            ok(f"{name}: {what}", good)
    time.sleep(1)
    last = measure(operator, ATTACK)
    show("after all of it", last)
    ok("nothing is left of it",
       last["fds"] <= quiet["fds"] + 1 and last["failures"] == 0 and
       last["cpu"] <= quiet["cpu"] + 0.02)


if os.geteuid() != 0:
    print("ok 1 - flood # SKIP needs root, to be three users")
    sys.exit(0)
os.setgroups([])
main()
