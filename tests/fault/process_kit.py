"""What the faults of whole processes are made with: a place to run in, a robot, an ear.

Ends only the processes that it began.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import zmq

SLOW = 4.0  # the machine may be busy: waits are this much longer than they need be
PERIOD = 0.01  # of the loop
ROWS = []

# daemon/blind.h
BLIND_TICK_GAP, BLIND_STALLS, BLIND_BUDGETS = 28, 29, 30
BLIND_LOCK, BLIND_WEIGHTS, BLIND_CONFIG, BLIND_DISK = 40, 41, 42, 43
BLIND_TIME = [BLIND_TICK_GAP, BLIND_STALLS, BLIND_BUDGETS]


class Problem(Exception):
    pass


def row(name, bound, detector=None, complaint=None):
    """detector: what is switched off in a blind run; complaint: what that must end with, a pattern."""
    def add(function):
        ROWS.append((name, bound, detector, complaint, function))
        return function

    return add


def need(holds, otherwise):
    if not holds:
        raise Problem(otherwise)


def hurry():
    """The robot is no part of what is tested: others should not keep it waiting."""
    with contextlib.suppress(OSError):
        os.nice(-10)


class Place:
    """A directory with a configuration, and the processes that run in it."""

    def __init__(self, build, environment):
        self.sim = f"{build}/actd-sim"
        self.build = f"{build}/blind/tests/fault" if environment else build
        self.environment = environment
        self.dir = tempfile.mkdtemp(prefix="actd-fault.")
        self.runtime = os.path.join(self.dir, "run")
        self.box = os.path.join(self.dir, "box")
        os.mkdir(self.runtime, 0o700)
        self.config = self.write_config("robot.yaml")
        self.processes = []

    def write_config(self, name, change=lambda text: text, policy="config/policies/reach"):
        with open("config/reach.yaml") as f:
            text = f.read()
        text = text.replace("instance: demo", f"instance: fault\nruntime: {self.runtime}\n"
                            f"black_box: {{directory: {self.box}}}")
        text = text.replace("policies/reach", os.path.abspath(policy))
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(change(text))
        os.chmod(path, 0o600)
        return path

    def start(self, *argv, log, env=None, **kw):
        kw.setdefault("stderr", subprocess.STDOUT)
        with open(os.path.join(self.dir, log), "w") as out:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out,
                                 env={**os.environ, **self.environment, **(env or {})}, **kw)
        self.processes.append(p)
        return p

    def robot(self):
        return self.start(self.sim, "--runtime", self.runtime, "--episodes", "500",
                          "--seed", "3", "--control-hz", "100", log="sim.log",
                          preexec_fn=hurry)

    def actd(self, *options, log="actd.log", config=None, prefix=(), **kw):
        return self.start(*prefix, f"{self.build}/actd", "run", "-c", config or self.config,
                          *options, log=log, **kw)

    def log(self, name="actd.log"):
        with open(os.path.join(self.dir, name), errors="replace") as f:
            return f.read()

    def until_logged(self, pattern, seconds, name="actd.log"):
        end = time.monotonic() + seconds * SLOW
        while not re.search(pattern, self.log(name)):
            if time.monotonic() > end:
                raise Problem(f"never in {name}: {pattern}; it ends: {self.log(name)[-160:]!r}")
            time.sleep(0.02)

    def close(self):
        for p in self.processes:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Ear:
    """Every command, as a driver receives it: (receipt, message)."""

    def __init__(self, place):
        self.heard, self.stop = [], False
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.connect(f"ipc://{place.runtime}/joints.command")
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        from actd.v1.joint_command_pb2 import JointCommand

        while not self.stop:
            if self.socket.poll(50):
                self.heard.append((time.monotonic(), JointCommand.FromString(self.socket.recv())))
        self.socket.close()

    def close(self):
        self.stop = True
        self.thread.join()

    def last(self):
        return self.heard[-1][1] if self.heard else None


def mode(m):
    from actd.v1.joint_command_pb2 import Mode

    return Mode.Name(m.mode)


def reason(m):
    from actd.v1.joint_command_pb2 import Reason

    return Reason.Name(m.reason).replace("REASON_", "")


@contextlib.contextmanager
def running(place, *options, **kw):
    """A robot and an actd that drives it; (actd, ear)."""
    place.robot()
    a = place.actd("--arm", *options, **kw)
    ear = Ear(place)
    try:
        end = time.monotonic() + 30 * SLOW
        while not (ear.last() and mode(ear.last()) == "MODE_RUNNING"):
            need(time.monotonic() < end and a.poll() is None, f"never RUNNING: {place.log()[-200:]!r}")
            time.sleep(0.05)
        time.sleep(0.3)
        yield a, ear
    finally:
        ear.close()


def ends(process, seconds, status):
    before = time.monotonic()
    try:
        got = process.wait(seconds * SLOW)
    except subprocess.TimeoutExpired:
        raise Problem(f"it does not end within {seconds * SLOW:g} s") from None
    need(got == status, f"exit {got}, not {status}")
    return time.monotonic() - before


def speed(m):
    return max(abs(j.velocity) for j in m.joints)
