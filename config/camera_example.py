#!/usr/bin/python3
"""The smallest camera publisher that actd can work with.

Publishes JPEG files one after the other as foxglove.CompressedImage, or without any a moving
pattern as foxglove.RawImage, at a fixed rate.

    apt-get install python3-zmq python3-protobuf protobuf-compiler
    mkdir -p build/py
    protoc -Iproto --python_out=build/py proto/foxglove/*.proto proto/actd/v1/*.proto
    PYTHONPATH=build/py config/camera_example.py RUNTIME CAMERA [JPEG...]

Run it as it is, through its first line: another python3 may not see Debian's packages.
RUNTIME is actd's directory of sockets (`actd check` prints it), CAMERA the name in robot.yaml.
"""
import itertools
import sys
import time
import zmq
from foxglove.CompressedImage_pb2 import CompressedImage
from foxglove.RawImage_pb2 import RawImage

RATE_HZ = 25  # cameras: NAME: rate_hz in robot.yaml
WIDTH, HEIGHT = 96, 96  # what the policy was trained on (`actd inspect` prints it)
RUNTIME, CAMERA, FILES = sys.argv[1], sys.argv[2], sys.argv[3:]


def compressed(path):
    with open(path, "rb") as file:  # baseline JPEG; progressive ones are refused
        return CompressedImage(data=file.read(), format="jpeg")


def raw(number):
    row = bytes((number + x) % 256 for x in range(WIDTH) for _ in "rgb")
    return RawImage(width=WIDTH, height=HEIGHT, encoding="rgb8",  # or bgr8, mono8
                    step=len(row),  # bytes from one row to the next; data has HEIGHT of them
                    data=row * HEIGHT)


context = zmq.Context()
context.linger = 0
frames = context.socket(zmq.PUB)
frames.sndhwm = 2  # an old frame is worth nothing
frames.connect(f"ipc://{RUNTIME}/camera.{CAMERA}")  # actd binds, cameras connect, in any order

due = time.monotonic()  # when to capture next
for image in map(compressed, itertools.cycle(FILES)) if FILES else map(raw, itertools.count()):
    image.timestamp.GetCurrentTime()  # when it was captured: not later, not twice the same
    frames.send(image.SerializeToString(), zmq.NOBLOCK)
    due = max(due + 1 / RATE_HZ, time.monotonic())  # late: do not catch up
    time.sleep(max(0, due - time.monotonic()))
