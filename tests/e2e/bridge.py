"""What comes out of actd bridge, as PlotJuggler's ZMQ subscriber reads it: [topic][protobuf][seconds].
bridge.py ENDPOINT JOINTS [joints]: with `joints`, also publishes joint states at ipc://JOINTS."""
import sys
import time

import zmq

from actd.v1 import joint_command_pb2 as jc
from actd.v1 import status_pb2 as st
from foxglove import JointStates_pb2 as js

endpoint, path = sys.argv[1:3]
WANT = ["/joint_states"] if len(sys.argv) > 3 else ["/command", "/status"]
TYPE = {"/command": jc.JointCommand, "/status": st.Status, "/joint_states": js.JointStates}
count = 0


def ok(what, condition, detail=""):
    global count
    count += 1
    print(f"{'' if condition else 'not '}ok {count} - bridge.py: {what}", flush=True)
    if not condition:
        print("#", detail)


z = zmq.Context()
sub = z.socket(zmq.SUB)
sub.setsockopt(zmq.SUBSCRIBE, b"")
sub.setsockopt(zmq.RCVTIMEO, 200)
sub.connect(endpoint)
driver = None
if WANT == ["/joint_states"]:
    driver = z.socket(zmq.PUB)
    driver.bind(f"ipc://{path}")

got = {t: [] for t in TYPE}
frames, end, k, arrived = set(), time.monotonic() + 4, 0, []
while time.monotonic() < end:
    if driver:
        m = js.JointStates()
        m.timestamp.FromNanoseconds(1_700_000_000_000_000_000 + k * 1_000_000)
        m.joints.add(name="shoulder_pan").position = k / 1000
        driver.send(m.SerializeToString())
        k += 1
        sub.setsockopt(zmq.RCVTIMEO, 5)
    try:
        parts = sub.recv_multipart()
    except zmq.Again:
        continue
    frames.add(len(parts))
    topic = parts[0].decode()
    got[topic].append((TYPE[topic].FromString(parts[1]), parts[2].decode("ascii"), time.time()))

ok("three frames each", frames == {3}, frames)
for t in WANT:
    ok(f"{t} comes", len(got[t]) > (20 if t != "/command" else 200), len(got[t]))
    stamps = [float(s) for _, s, _ in got[t]]
    ok(f"{t}: the seconds are the message's own", all(
        abs(m.timestamp.seconds + m.timestamp.nanos / 1e9 - s) < 1e-6 for (m, _, _), s in zip(got[t], stamps)))
    ok(f"{t}: and grow", all(a <= b for a, b in zip(stamps, stamps[1:])))
if driver:
    numbers = [round(m.joints[0].position * 1000) for m, _, _ in got["/joint_states"]]
    odd = [(a, b) for a, b in zip(numbers, numbers[1:]) if b != a + 1]
    ok("joint states as the driver sent them, all of them", not odd, (len(numbers), odd[:5]))
else:
    commands = [m for m, _, _ in got["/command"]]
    numbers = [m.sequence for m in commands]
    ok("no command is missing", numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers[:20])
    ok("commands say what joints do", len(commands[0].joints) == 6 and commands[0].joints[0].name == "shoulder_pan")
    status = got["/status"][-1][0]
    ok("the status has the measured joints", len(status.joints) == 6 and status.instance == "e2e", status)
    ok("about 20 times a second", 50 <= len(got["/status"]) <= 90, len(got["/status"]))
    ok("no later than 0.2 s", sorted(at - float(s) for _, s, at in got["/command"])[-1] < 0.2)
