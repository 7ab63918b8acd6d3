"""Plays actd to config/driver_example.py: RUNTIME DIRECTORY COMMAND. Prints TAP.

Binds actd's end of the sockets, listens to the joints, commands, and falls silent.
"""
import subprocess
import sys
import time
import zmq
from actd.v1.joint_command_pb2 import JointCommand
from foxglove.JointStates_pb2 import JointStates

RUNTIME, DIRECTORY, COMMAND = sys.argv[1:]
JOINTS = ["base", "elbow"]
tests = 0


def ok(what, holds):
    global tests
    tests += 1
    print(f"{'ok' if holds else 'not ok'} {tests} - {what}", flush=True)
    return holds


def bind(kind, name):
    socket = zmq.Context.instance().socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    if kind == zmq.SUB:
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.bind(f"ipc://{RUNTIME}/{name}")
    return socket


states, commands = bind(zmq.SUB, "joints.state"), bind(zmq.PUB, "joints.command")


def listen(seconds):
    """All samples of the next seconds: (receipt, message)."""
    end, samples = time.monotonic() + seconds, []
    while time.monotonic() < end:
        if states.poll(max(0, int(1000 * (end - time.monotonic())))):
            samples.append((time.monotonic(), JointStates.FromString(states.recv())))
    return samples


def command(base, ttl_s):
    c = JointCommand(sequence=1, time_to_live_ns=int(ttl_s * 1e9))
    c.joints.add(name="elbow", position=0.0)
    c.joints.add(name="base", position=base)
    commands.send(c.SerializeToString())


def base(sample):
    return next(j.position for j in sample[1].joints if j.name == "base")


def stamp(sample):
    return sample[1].timestamp.ToNanoseconds()


def run():
    ok("publishes", states.poll(20000) != 0)
    samples = listen(2)
    ok(f"at 100 Hz or a little less: {len(samples) / 2} Hz", 60 <= len(samples) / 2 <= 102)
    ok("both joints, each once",
       all(sorted(j.name for j in m.joints) == JOINTS for _, m in samples))
    ok("stamps go forward", all(stamp(a) < stamp(b) for a, b in zip(samples, samples[1:])))
    ok("stamps are now", abs(stamp(samples[-1]) * 1e-9 - time.time()) < 1)
    ok("stands still unasked", all(base(s) == 0 for s in samples))

    begin = time.monotonic()
    while time.monotonic() < begin + 1:  # as actd does: a command per period
        command(9.0, 0.1)
        time.sleep(0.02)
    moved = listen(1)
    last = base(moved[-1])
    ok(f"obeys: moved {last:.3f} rad", 0.2 < last < 0.7)
    still = [at for at, m in moved if base((at, m)) == last]
    ok(f"stops by itself {still[0] - begin - 1:.3f} s after the last command",
       still[0] - begin - 1 < 0.4 and base(moved[0]) < 9)
    ok("and stays", all(base(s) == last for s in listen(0.5)))

    for i in range(20):  # the newest counts
        command(last + 0.01 * i, 5)
    ok("goes to the newest of many commands", abs(base(listen(1)[-1]) - last - 0.19) < 1e-9)


# env reads the settings before the program, and its process becomes the program's.
driver = subprocess.Popen(["bash", "-c", "exec env " + COMMAND], cwd=DIRECTORY,
                          stdin=subprocess.DEVNULL)
try:
    run()
    ok("still runs", driver.poll() is None)
finally:
    driver.kill()
    driver.wait()
