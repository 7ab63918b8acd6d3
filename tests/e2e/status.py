"""Takes one status message and checks that its numbers belong together."""
import sys
import zmq
from actd.v1.status_pb2 import Status

context = zmq.Context()
context.linger = 0
socket = context.socket(zmq.SUB)
socket.subscribe(b"")
socket.connect(f"ipc://{sys.argv[1]}/status")
s = None
for _ in range(3):  # the second is over a whole second
    if not socket.poll(5000):
        sys.exit("no status within 5 s")
    parts = socket.recv_multipart()
    assert len(parts) == 1, "a status has one part"
    before, s = s, Status.FromString(parts[0])
print(s)
seconds = (s.timestamp.ToNanoseconds() - before.timestamp.ToNanoseconds()) / 1e9
assert s.control_hz == 100 and 80 < s.achieved_hz < 110, "rates"
rate = (s.commands - before.commands) / seconds
assert abs(s.achieved_hz - rate) < 0.03 * rate, f"the rate achieved is that of commands, {rate}"
assert s.ticks > 100 and s.commands > 0, "ticks and commands"
assert s.lateness.count == s.ticks or abs(s.lateness.count - s.ticks) < 20, "one lateness a tick"
assert 0 < s.lateness.p50_ns <= s.lateness.p99_ns <= s.lateness.max_ns, "percentiles in order"
assert [x.name for x in s.streams] == ["joints", "front", "wrist"], "streams"
assert all(x.received > 0 and x.achieved_hz > 0 for x in s.streams), "streams flow"
assert s.scheduling.startswith("SCHED_"), "class granted"
assert s.policy.endswith("reach") and s.version, "who it is"
