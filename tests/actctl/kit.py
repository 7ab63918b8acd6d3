"""What the tests of actctl share: a daemon that is only a socket and a function, and TAP."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
ACTCTL = os.environ.get("ACTCTL", f"{BUILD}/actctl")
T = os.environ["T"]  # a directory of ours, with the generated modules in T/py
sys.path.insert(0, f"{T}/py")
from actd.v1 import control_pb2 as pb  # noqa: E402
from actd.v1 import joint_command_pb2 as jc  # noqa: E402
from actd.v1 import status_pb2 as st  # noqa: E402

count = failed = 0


def ok(what, condition, detail=""):
    global count, failed
    count += 1
    failed += not condition
    print(f"{'' if condition else 'not '}ok {count} - {what}", flush=True)
    if not condition:
        for line in str(detail).splitlines()[:40]:
            print("#", line.encode("ascii", "backslashreplace").decode())
    return condition


class Daemon:
    """Answers each request with what answer(request) yields: replies, bytes, or None to hang up."""

    def __init__(self, answer, path=None):
        self.path = path or tempfile.mktemp(prefix="sock", dir=T)
        self.answer, self.asked, self.open = answer, [], []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(s)
            threading.Thread(target=self.converse, args=(s,), daemon=True).start()

    def converse(self, s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        try:
            while packet := s.recv(65536):
                q = pb.ControlRequest.FromString(packet)
                self.asked.append(q)
                for r in self.answer(q):
                    if r is None:
                        s.close()
                        return
                    if not isinstance(r, bytes):
                        if not r.id:
                            r.id = q.id
                        r = r.SerializeToString()
                    s.send(r)
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.open:
            try:
                s.shutdown(socket.SHUT_RDWR)
                s.close()
            except OSError:
                pass
        os.unlink(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Ran:
    def __init__(self, p, seconds):
        self.rc, self.seconds = p.returncode, seconds
        self.out, self.err = p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")

    def json(self):
        def twice(pairs):
            assert len(dict(pairs)) == len(pairs), "a key twice"
            return dict(pairs)

        return json.loads(self.out, object_pairs_hook=twice)

    def __str__(self):
        return f"exit {self.rc} after {self.seconds:.2f} s\n{self.out}\n--\n{self.err}"


def run(*args, env=None, **kw):
    e = {k: v for k, v in os.environ.items() if k not in ("ACTD_SOCKET", "XDG_RUNTIME_DIR")}
    e.update(env or {})
    t0 = time.monotonic()
    p = subprocess.run([ACTCTL, *args], env=e, stdin=subprocess.DEVNULL, capture_output=True,
                       timeout=90, **kw)
    return Ran(p, time.monotonic() - t0)


def reply(result="OK", text="", **kw):
    return pb.ControlReply(result=pb.Result.Value("RESULT_" + result), text=text, **kw)


def always(*replies):
    """A daemon's answer() that gives copies of the same to everybody."""
    def answer(_):
        for r in replies:
            if isinstance(r, pb.ControlReply):
                c = pb.ControlReply()
                c.CopyFrom(r)
                r = c
            yield r
    return answer


def histogram(p50, p99, most, n=1000):
    h = st.Histogram(count=n, p50_ns=p50, p99_ns=p99, max_ns=most, sum_ns=n * p50)
    h.buckets.add(below_ns=55_000, count=400)
    h.buckets.add(below_ns=60_000, count=n - 411)
    h.buckets.add(below_ns=130_000, count=10)
    h.buckets.add(below_ns=3_000_000, count=1)
    return h


def status(joints=6, cameras=2, ticks=12345, mode="RUNNING"):
    s = st.Status(instance="reach", version="9.9-test", mode=jc.Mode.Value("MODE_" + mode),
                  control_hz=100, achieved_hz=99.7, ticks=ticks, skipped_ticks=2, inference_hz=3.1,
                  chunks_used=77, scheduling="SCHED_FIFO 50", memory_locked=True, commands=ticks - 5,
                  policy="/policies/reach", seam_max_rad=0.01)
    s.timestamp.seconds, s.timestamp.nanos = 1_700_000_000, 250_000_000
    for f, v in (("lateness", (50_000, 120_000, 2_400_000)), ("tick_time", (20_000, 40_000, 90_000)),
                 ("inference", (23_000_000, 32_000_000, 40_000_000)),
                 ("chunk_latency", (25_000_000, 35_000_000, 44_000_000))):
        getattr(s, f).CopyFrom(histogram(*v))
    s.streams.add(name="joints", asked_hz=100, achieved_hz=99.9, age_ns=4_000_000, received=12000, fresh=True)
    for i in range(cameras):
        s.streams.add(name=["front", "wrist"][i] if i < 2 else f"cam{i}", asked_hz=30, achieved_hz=29.5 - i,
                      age_ns=21_000_000 + i, received=3600, fresh=i == 0, slow=i == 1,
                      seen_early=310 if i == 0 else 0, seen_kept=i, seen_computed=24)
    for i in range(joints):
        s.joints.add(name=f"joint_{i}", measured=0.1 * i, commanded=0.1 * i + 0.01,
                     wanted=0.1 * i + 0.02 if i else float("nan"), velocity=0.5,
                     limit=jc.LIMIT_VELOCITY if i == 2 else jc.LIMIT_NONE, min=-2, max=2)
    s.chunk.CopyFrom(st.ChunkStatus(id=77, age_ns=85_000_000, row=31, remaining=69, rows=100, blended=2,
                                    step_ns=20_000_000))
    s.policy_in_use.CopyFrom(st.PolicyStatus(name="reach", directory="/policies/reach", type="act",
                             digest="3f" * 32, config_sha256="a" * 64, weights_sha256="b" * 64,
                             statistics_sha256="c" * 64, generation=3, since_tick=100, previous="reach-old",
                             swaps=2, swaps_failed=1, precision="int8"))
    s.drops.add(name="late", value=3)
    s.drops.add(name="corrupt", value=0)
    s.limited.add(name="joint_2:velocity", value=17)
    return s


def finish():
    print(f"1..{count}")
    sys.exit(1 if failed else 0)
