#!/usr/bin/python3
"""Prints what actd says of itself, once a second.

    apt-get install python3-zmq python3-protobuf protobuf-compiler
    mkdir -p build/py
    protoc -Iproto --python_out=build/py proto/foxglove/*.proto proto/actd/v1/*.proto
    PYTHONPATH=build/py config/status_example.py RUNTIME

Run it as it is, through its first line: another python3 may not see Debian's packages.
RUNTIME is actd's directory of sockets (`actd check` prints it).
"""
import sys
import zmq
from actd.v1.joint_command_pb2 import Mode, Reason
from actd.v1.status_pb2 import Status

socket = zmq.Context().socket(zmq.SUB)
socket.subscribe(b"")
socket.connect(f"ipc://{sys.argv[1]}/status")
while True:
    status = Status.FromString(socket.recv())
    print(Mode.Name(status.mode), Reason.Name(status.reason), end="")
    print(f", commands {status.achieved_hz:.1f} of {status.control_hz:g} Hz", end="")
    for stream in status.streams:
        print(f", {stream.name} {stream.achieved_hz:.1f} of {stream.asked_hz:g} Hz", end="")
    for fault in status.faults:  # each that ever came up
        state = "active" if fault.active else "latched" if fault.latched else "over"
        print(f"; fault {Reason.Name(fault.reason)} x{fault.episodes} {state}", end="")
    for budget in status.budgets:  # deadlines
        if budget.missed:
            worst = f"worst {budget.worst_ns / 1e6:.1f} ms in tick {budget.worst_tick}"
            print(f"; {budget.name} missed {budget.missed}, {worst}", end="")
    for seam in status.seams:  # jumps of the target where a chunk came into view
        if seam.max_rad > 0.001:
            print(f"; seam {seam.joint} {seam.max_rad:.3f} rad", end="")
    for drop in status.drops:  # what was refused or lost since the start, and why
        print(f"; {drop.name}: {drop.value}", end="")
    print(flush=True)
