#!/usr/bin/python3
"""The smallest robot driver that actd can work with.

Publishes foxglove.JointStates at a fixed rate, obeys actd.v1.JointCommand, and stops the arm by
itself when no command has come for as long as the last one was good for.

    apt-get install python3-zmq python3-protobuf protobuf-compiler
    mkdir -p build/py
    protoc -Iproto --python_out=build/py proto/foxglove/*.proto proto/actd/v1/*.proto
    PYTHONPATH=build/py config/driver_example.py RUNTIME JOINT...

Run it as it is, through its first line: another python3 may not see Debian's packages.
RUNTIME is actd's directory of sockets (`actd check` prints it), JOINT the names in robot.yaml.
"""
import sys
import time
import zmq
from actd.v1.joint_command_pb2 import JointCommand
from foxglove.JointStates_pb2 import JointStates

RATE_HZ = 100  # joint_state.rate_hz in robot.yaml
RUNTIME, JOINTS = sys.argv[1], sys.argv[2:]

# Put your servo bus here. This arm moves each joint to its target at 0.5 rad/s.
position = dict.fromkeys(JOINTS, 0.0)  # rad
target = dict.fromkeys(JOINTS, 0.0)


def measure():
    for name in JOINTS:
        step = 0.5 / RATE_HZ
        position[name] += min(step, max(-step, target[name] - position[name]))
    return position


context = zmq.Context()
context.linger = 0
states = context.socket(zmq.PUB)
states.connect(f"ipc://{RUNTIME}/joints.state")  # actd binds, drivers connect, in any order
commands = context.socket(zmq.SUB)
commands.subscribe(b"")
commands.connect(f"ipc://{RUNTIME}/joints.command")

expires = None  # when the arm must stop if no command comes; None: it has stopped
due = time.monotonic()  # when to publish next
while True:
    newest = None  # only the newest command counts
    commands.poll(max(0, int(1000 * (due - time.monotonic()))))
    while commands.poll(0):
        newest = commands.recv()
    if newest is not None:
        command = JointCommand.FromString(newest)
        target.update((joint.name, joint.position) for joint in command.joints)
        # Counted from receipt, so that the two clocks need not agree.
        expires = time.monotonic() + command.time_to_live_ns * 1e-9
    if expires and time.monotonic() >= expires:
        target.update(position)  # stay here, torque on: never let an arm fall
        expires = None
    if time.monotonic() >= due:
        message = JointStates()
        for name, rad in measure().items():
            message.joints.add(name=name, position=rad)
        message.timestamp.GetCurrentTime()  # when the joints were measured
        states.send(message.SerializeToString(), zmq.NOBLOCK)
        due = max(due + 1 / RATE_HZ, time.monotonic())  # late: do not catch up
