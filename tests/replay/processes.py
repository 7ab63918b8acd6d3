#!/usr/bin/python3
"""Recordings of a real daemon, each replayed to the same bytes.

    processes.py BUILD [--only PART]

The daemon drives the simulated arm and records always: under every fault of tests/fault/process*.py;
with two policies changed in mid-motion, an emergency stop and what follows; and cut in the middle, where
the replay begins with a keyframe. Every log is verified bit by bit, its policies included, and so is the
log that the replay itself writes. Of a fault that leaves no log it is shown that no daemon came as far as
its loop, and which exit status each had. One line per log. Run from the top of the tree; ends only the
processes that it began.
"""
import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, "tests/fault")
import process_kit as kit  # noqa: E402
from process_kit import Problem, ends, need, running  # noqa: E402

import process_files  # noqa: E402,F401
import process_limits  # noqa: E402,F401
import process_peers  # noqa: E402,F401
import process_signals  # noqa: E402,F401

# It is refused before the loop: there is nothing to record.
REFUSED = ("address space of 150 MB", "memory can not be locked, require_rt",
           "weights cut, hostile, misnamed, not finite", "every mistake in a configuration")
# The first log ends in the middle of a chunk, and the next start has made it whole.
KILLED = ("SIGKILL", "SIGSEGV, as of the policy's thread", "SIGABRT, as of a library",
          "a cgroup out of memory: killed by the kernel")
# No robot is there, for a moment only: ticks, and nothing else.
ALONE = ("NOTIFY_SOCKET bad or abstract",)
TRIES = 3  # a busy machine keeps the simulated robot waiting, and then there is nothing to record
LEAST_TICKS, LEAST_ALONE = 50, 20


class Place(kit.Place):
    """With a directory of recordings, two policies to change between, and all that was ever said."""

    said, checked = "", 0

    def write_config(self, name, change=lambda text: text, policy="config/policies/reach"):
        self.record = os.path.join(self.dir, "record")
        self.policies = os.path.join(self.dir, "policies")
        if not os.path.isdir(self.policies):
            for copy in ("reach", "other"):
                shutil.copytree("config/policies/reach", os.path.join(self.policies, copy))
            another(os.path.join(self.policies, "other"))

        def recorded(text):
            text = text.replace("instance: fault", f"record: {{mode: always, directory: {self.record}}}\n"
                                "instance: fault")
            return change(re.sub(r"(swap:\n +directory: )policies\b", rf"\g<1>{self.policies}", text))

        if policy == "config/policies/reach":
            policy = os.path.join(self.policies, "reach")
        return super().write_config(name, recorded, policy)

    def start(self, *argv, log, **kw):
        self.keep(log)
        return super().start(*argv, log=log, **kw)

    def keep(self, log):
        with contextlib.suppress(FileNotFoundError):
            self.said += self.log(log)

    def everything_said(self):
        for log in glob.glob(f"{self.dir}/*.log"):
            self.keep(os.path.basename(log))
        return self.said

    def ctl(self, *argv):
        return subprocess.run([f"{self.build}/actctl", "--socket", f"{self.runtime}/control", *argv],
                              capture_output=True, text=True)


def another(directory):
    """Weights that differ in the lowest bits of the last thousand: other chunks, by a hair."""
    path = os.path.join(directory, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for i in range(len(data) - 4000, len(data), 4):
        data[i] ^= 3
    with open(path, "wb") as f:
        f.write(data)
    os.unlink(os.path.join(directory, "golden.safetensors"))


# ---- verification: beside the next run, on the other core ----------------------------------------

class Verification:
    def __init__(self, name, place, build, path, exact=True, cut=None, alone=False):
        self.name, self.place, self.exact, self.cut, self.alone = name, place, exact, cut, alone
        self.again = f"{path}.again"
        self.out = open(os.path.join(place.dir, os.path.basename(path) + ".json"), "w+")
        verify = f"'{build}/actd' replay verify --json -q"
        command = (f"{verify} '{path}' -o '{self.again}' && {verify} '{self.again}'")
        self.process = subprocess.Popen(["nice", "-n", "10", "sh", "-c", command], stdout=self.out,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def judge(self):
        """A line of figures, or a Problem."""
        status = self.process.wait()
        self.out.seek(0)
        text = self.out.read()
        self.out.close()
        need(status == 0, f"exit {status}: {told(text)}")
        decoder, end, said = json.JSONDecoder(), 0, []
        while text[end:].strip():
            end += len(text[end:]) - len(text[end:].lstrip())
            value, end = decoder.raw_decode(text, end)
            said.append(value)
        need(len(said) == 2, f"{len(said)} verdicts, not 2")
        for which, v in zip(("", "the replay's own log: "), said):
            need(v["equal"] and v["bits"], f"{which}not compared bit by bit")
            least = LEAST_ALONE if self.alone else LEAST_TICKS
            need(v["ticks"]["compared"] >= least, f"{which}only {v['ticks']['compared']} ticks")
            need(not self.cut or v["keyframes"] >= 1, f"{which}it did not begin with a keyframe")
            for what in ("inputs", "chunks", "ticks", "commands") if self.exact else ():
                need(v[what]["not_compared"] == 0, f"{which}{v[what]['not_compared']} {what} were not compared")
                need(v[what]["compared"] > 0 or self.alone, f"{which}there are no {what}")
            need(not self.exact or v["gaps"] == 0, f"{which}{v['gaps']} gaps")
        v = said[0]
        return "".join(f"{v[w]['compared']:6} {w}" for w in ("ticks", "inputs", "chunks", "commands")) + \
            (f", {v['keyframes']} keyframe" if self.cut else "") + f", {v['times_real_time']:.0f} x real time"


def told(text):
    try:
        return json.JSONDecoder().raw_decode(text.lstrip())[0]["first_difference"] or text[-300:]
    except (ValueError, KeyError, TypeError):
        return text[-300:]


# ---- runs ----------------------------------------------------------------------------------------

def logs(place):
    return sorted(glob.glob(f"{place.record}/*.mcap") + glob.glob(f"{place.record}/*.mcap.part"))


class NotHere(Exception):
    """The fault can not be made on this machine."""


def fault(place, name, function):
    """Whether all went as it must is asked elsewhere: here it is what was recorded."""
    try:
        _, action, _ = function(place)
        if action.startswith("not on this machine"):
            raise NotHere(action)
        place.action = action
    except Problem as e:
        need("never RUNNING" not in str(e) and name not in REFUSED, str(e))
    for p in place.processes:  # the daemon first: what it ends with is recorded as well
        if p.poll() is None and p is not place.processes[0]:
            p.terminate()
            p.wait(20)


def mistaken(place):
    """Every configuration with a mistake, and a recording that it asks for, run and not only checked."""
    place.checked = 0
    for path in sorted(glob.glob("tests/data/config/*.yaml")):
        if os.path.basename(path).startswith("policy_"):
            continue
        mine = os.path.join(place.dir, os.path.basename(path))
        shutil.copy(path, mine)
        os.chmod(mine, 0o600)
        with open(mine, "a") as f:
            f.write(f"\nrecord: {{mode: always, directory: {place.record}}}\n")
        a = place.start(f"{place.build}/actd", "run", "-c", mine, "--seconds", "1", log="actd.log")
        ends(a, 10, 78)
        place.checked += 1
    place.action = f"{place.checked} times exit 78, run and not only checked"


def refused(place):
    """No recording, since no daemon came as far as its loop."""
    said = place.everything_said()
    need("loop: " not in said, "its loop ran, and there is no recording" if not logs(place) else "its loop ran")
    need(not logs(place), f"a recording of nothing: {logs(place)}")
    need(place.processes or place.checked, "nothing was started")
    need(all((p.wait(5) or 0) > 0 for p in place.processes), "one ended as if all were well, or by a signal")


def until(place, wanted, seconds=15):
    end = time.monotonic() + seconds * kit.SLOW
    while True:
        r = place.ctl("--json", "status")
        mode = re.search(r'"mode": "(\w+)"', r.stdout)
        if mode and mode.group(1) == wanted:
            return
        need(time.monotonic() < end, f"never {wanted}: {r.stdout[-200:]}{r.stderr[-200:]}")
        time.sleep(0.05)


def ask(place, *argv, seconds=10):
    end = time.monotonic() + seconds * kit.SLOW
    while True:
        r = place.ctl(*argv)
        if r.returncode == 0:
            return
        need(time.monotonic() < end, f"actctl {' '.join(argv)}: exit {r.returncode}: {r.stdout}{r.stderr}")
        time.sleep(0.2)


def day(place):
    """Two policies changed while the arm moves, an emergency stop, and on again."""
    with running(place) as (actd, _):
        time.sleep(1)
        ask(place, "swap", "other")
        time.sleep(1.5)
        ask(place, "record", "mark", "the other one drives")
        ask(place, "swap", "reach")
        time.sleep(1.5)
        ask(place, "estop")
        until(place, "ESTOP")
        time.sleep(0.3)
        ask(place, "reset")
        until(place, "READY")
        ask(place, "arm")
        until(place, "RUNNING")
        time.sleep(1.5)
        actd.terminate()
        ends(actd, 5, 0)


def rows():
    for name, _, _, _, function in kit.ROWS:
        if name == "every mistake in a configuration":
            yield name, mistaken
        else:
            yield name, lambda place, n=name, f=function: fault(place, n, f)
    yield "two swaps, an e-stop, and on again", day


class Session:
    def __init__(self, build):
        self.build, self.waiting, self.n, self.good = build, [], 0, 0

    def attempt(self, name, run):
        for tries in range(1, 2 if name in REFUSED else TRIES + 1):
            place = Place(self.build, {})
            try:
                run(place)
                if name in REFUSED:
                    refused(place)
                else:
                    need(logs(place), "it left no recording")
                return place
            except NotHere:
                place.close()
                raise
            except Problem as e:
                problem = str(e)
            except Exception as e:  # one that can not be run has failed
                problem = f"{type(e).__name__}: {e}"
            place.close()
        raise Problem(problem)

    def say(self, name, figures, problem=None):
        self.n, self.good = self.n + 1, self.good + (problem is None)
        print(f"{name:50.50} {figures:64} "
              f"{'FAILED' if problem else 'no log' if name in REFUSED else 'the same'}")
        if problem:
            print(f"    {problem}")
        sys.stdout.flush()

    def finish(self, upto):
        """Verifications that were begun, but the last `upto` of them."""
        while len(self.waiting) > upto:
            v = self.waiting.pop(0)
            try:
                self.say(v.name, v.judge())
            except Problem as e:
                self.say(v.name, "", str(e))
            if all(w.place is not v.place for w in self.waiting):
                v.place.close()

    def verify(self, name, place):
        for i, path in enumerate(logs(place)):
            killed = path.endswith(".part") or (name in KILLED and i == 0)
            self.waiting.append(Verification(
                name + (", and after it" if i else "") + (" (unfinished)" if killed else ""), place,
                self.build, path, exact=not killed, alone=name in ALONE))

    def cut(self, place):
        """The middle of a recording is a recording."""
        path, out = logs(place)[0], os.path.join(place.dir, "middle.mcap")
        r = subprocess.run([f"{self.build}/actd", "log", "cut", path, "--from", "3", "--to", "6", "-o", out],
                           capture_output=True, text=True)
        if r.returncode:
            self.say("three seconds cut from the middle", "", f"exit {r.returncode}: {r.stderr[-300:]}")
        else:
            self.waiting.append(Verification("three seconds cut from the middle", place, self.build, out,
                                             exact=False, cut=True))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--only", default="")
    o = p.parse_args()
    python = tempfile.mkdtemp(prefix="actd-replay-py.")
    subprocess.run(["protoc", "-Iproto", f"--python_out={python}", *glob.glob("proto/actd/v1/*.proto")],
                   check=True)
    sys.path.insert(0, python)
    s = Session(os.path.abspath(o.build))
    print("\na real daemon")
    for name, run in rows():
        if o.only not in name:
            continue
        try:
            place = s.attempt(name, run)
        except NotHere as e:
            print(f"{name:50.50} # SKIP {e}")
            continue
        except Problem as e:
            s.say(name, "", str(e))
            continue
        if name in REFUSED:
            s.say(name, f"refused before its loop: {place.action}")
            place.close()
            continue
        s.verify(name, place)
        if run is day:
            s.cut(place)
        s.finish(2)
    s.finish(0)
    shutil.rmtree(python)
    print(f"\n{s.n} logs of processes: {s.good} replayed to the same bytes, policies included, or rightly none")
    sys.exit(0 if s.n and s.good == s.n else 1)


if __name__ == "__main__":
    main()
