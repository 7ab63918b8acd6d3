"""Processes that infer, or probe, when told to: a line in, a line out (tests/bench/peers.py)."""

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path


class Failed(Exception):
    """A sentence for the user, and where more can be read."""

    def __init__(self, text, log=None):
        super().__init__(text)
        self.log = f" ({log})" if log else ""


class Child:
    """In a process group of its own: Ctrl-C reaches only the one who asks, who then ends all."""

    alive = []

    def __init__(self, name, command, env, log):
        self.name, self.log, self.buffer, self.facts = name, Path(log), b"", {}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen(
                [str(c) for c in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **env},
                start_new_session=True,
            )
        Child.alive.append(self)

    def why(self):
        lines = [x for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
        return lines[-1].strip()[:300] if lines else "it said nothing"

    def line(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"{self.name}: no answer in {seconds:.0f} s.", self.log)
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise Failed(f"{self.name} ended: {self.why()}", self.log)
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace").strip()

    def expect(self, word, seconds):
        """The rest of the next line that begins with `word`; what libraries say is passed over."""
        while True:
            first, _, rest = self.line(seconds).partition(" ")
            if first == word:
                return rest

    def tell(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.name} ended: {self.why()}", self.log) from None

    def ask(self, text, word, seconds=300):
        self.tell(text)
        return self.expect(word, seconds)

    def stop(self):
        if self not in Child.alive:
            return
        Child.alive.remove(self)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # compilers that it started, too
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def stop_all():
    while Child.alive:
        Child.alive[-1].stop()


class Engine(Child):
    """A contestant with its model loaded."""

    def ready(self, seconds):
        self.facts = json.loads(self.expect("ready", seconds))
        return self

    def run(self, n):
        """[(wall ms, processor ms)] of n inferences."""
        rest = self.ask(f"run {n}", "ms")
        return [tuple(float(x) for x in pair.split("/")) for pair in rest.split()]

    def actions(self, path):
        """The last normalised actions."""
        self.ask(f"actions {path}", "actions")
        data = Path(path).read_bytes()
        Path(path).unlink()
        return memoryview(data).cast("f").tolist()


class Probe(Child):
    """fma_probe: how much of the cores is there, GFLOP/s.

    `best` is what they could do: on a machine that is never quiet only the threads' own
    processor time knows. A measurement is by the wall's clock.
    """

    MS = 25

    def ready(self):
        self.isa, *runs = self.expect("ready", 20).split()
        self.best = {(n, isa): 0.0 for isa in runs for n in (1, 2)}
        return self

    def measure(self, n, isa=None):
        isa = isa or self.isa
        answer = self.ask(f"probe {n} {isa} {self.MS}", "gflops", 30)
        wall, own = (float(x) for x in answer.split())
        self.best[n, isa] = max(self.best[n, isa], wall, own)
        return wall
