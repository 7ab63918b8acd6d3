"""Other processes: a second daemon, and peers that do not behave."""
import contextlib
import os
import signal
import socket
import time

import zmq

from process_kit import BLIND_LOCK, PERIOD, SLOW, ends, mode, need, reason, row, running


@row("a second daemon", "exit 69, the first untouched", [BLIND_LOCK],
     r"^exit -?\d+, not 69|does not end|^it does not name the first")
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
