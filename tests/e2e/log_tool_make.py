"""Recordings for log_tool.sh, written as the format's specification tells it; nothing of actd's
writer is in here. argv: directory, directory of the generated protobuf modules."""

import pathlib
import struct
import subprocess
import sys
import zlib

OUT, PY = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, PY)

from actd.v1 import record_pb2  # noqa: E402
from foxglove import CompressedImage_pb2, JointStates_pb2, Log_pb2  # noqa: E402

MAGIC = b"\x89MCAP0\r\n"
BASE = 1_700_000_000_000_000_000


def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<I", len(data)) + data


def record(op, content):
    return struct.pack("<BQ", op, len(content)) + content


def pairs(d):
    return text(b"".join(text(k) + text(v) for k, v in d.items()))


def descriptors(name):
    out = OUT / "fds"
    subprocess.run(
        ["protoc", "-Iproto", "-I/usr/include", "--include_imports", f"--descriptor_set_out={out}",
         f"proto/{name}.proto"], check=True)  # fmt: skip
    data = out.read_bytes()
    out.unlink()
    return data


SCHEMAS = {
    1: ("actd.v1.Tick", "actd/v1/record"),
    2: ("foxglove.JointStates", "foxglove/JointStates"),
    3: ("foxglove.CompressedImage", "foxglove/CompressedImage"),
    4: ("foxglove.Log", "foxglove/Log"),
    5: ("actd.v1.Seat", "actd/v1/record"),
}
CHANNELS = {1: (1, "/tick"), 2: (2, "/joint_states"), 3: (3, "/camera/front"), 4: (4, "/events"),
            5: (5, "/policy/seat"), 6: (0, "/keyframe")}  # fmt: skip


class File:
    """Without a summary: readers have to do without, too."""

    def __init__(self, path, metadata):
        self.path, self.data = path, MAGIC + record(1, text("") + text("actd test"))
        self.data += record(12, text("actd") + pairs(metadata))
        self.head = b"".join(
            record(3, struct.pack("<H", i) + text(name) + text("protobuf") + text(descriptors(f)))
            for i, (name, f) in SCHEMAS.items()
        ) + b"".join(
            record(4, struct.pack("<HH", i, s) + text(topic)
                   + text("protobuf" if s else "actd-keyframe") + pairs({}))
            for i, (s, topic) in CHANNELS.items())  # fmt: skip
        self.ends = []

    def chunk(self, messages):
        inner = self.head + b"".join(
            record(5, struct.pack("<HIQQ", c, n, t, t) + data) for n, (t, c, data) in
            enumerate(messages))  # fmt: skip
        self.head = b""
        times = [t for t, _, _ in messages]
        self.data += record(6, struct.pack("<QQQI", min(times), max(times), len(inner),
                                           zlib.crc32(inner)) + text("")
                            + struct.pack("<Q", len(inner)) + inner)  # fmt: skip
        self.ends.append(len(self.data))

    def finish(self):
        self.data += record(15, struct.pack("<I", zlib.crc32(self.data)))
        self.data += record(2, struct.pack("<QQI", 0, 0, 0)) + MAGIC
        self.save()

    def save(self, n=None):
        self.path.write_bytes(self.data[:n])


def keyframe(kind, at):
    return struct.pack("<IIQQqIIIIQ", 0x4B544341, kind, 1, 1, at, 6, 1, 10, 4, 64) + bytes(100)


def log(level, name, message):
    return Log_pb2.Log(level=level, name=name, message=message).SerializeToString()


def image():
    m = CompressedImage_pb2.CompressedImage(format="jpeg", data=bytes(5000))
    return m.SerializeToString()


def joints():
    m = JointStates_pb2.JointStates()
    m.joints.add(name="a\"b", position=0.25)
    return m.SerializeToString()


def tick(k):
    m = record_pb2.Tick(tick=k, now_ns=-k, measured=[0.5, float("nan")], mode=1,
                        requests=3, room=True)  # fmt: skip
    m.cameras.add(received_ns=77)
    return m.SerializeToString()


def seat():
    m = record_pb2.Seat(generation=1, name="reach", digest="ab" * 32, since_ns=1)
    return m.SerializeToString()


def second(s):
    """What one second of a run records."""
    at = BASE + s * 10**9
    out = [(at, 6, keyframe(2, at)), (at + 10**6, 6, keyframe(1, at))]
    out += [(at + k * 10**8 + 2 * 10**6, 1, tick(10 * s + k)) for k in range(10)]
    out += [(at + k * 2 * 10**8, 2, joints()) for k in range(5)]
    out += [(at + k * 2 * 10**8, 3, image()) for k in range(5)]
    if s == 0:
        out.append((at, 5, seat()))
    if s == 2:
        out.append((at + 1, 4, log(2, "mark", "now")))
    if s == 8:
        out.append((at + 5 * 10**8, 4, log(5, "fault", "the elbow is too fast")))
    if s < 4:
        out += [(at + 2 + k, 4, log(3, "actd", "chatter")) for k in range(10)]
    if s == 9:
        out.append((at + 3, 4, log(3, "record", "could not keep up: lost 7 tick records")))
    return out


FACTS = {"run_id": "r1", "base_ns": str(BASE), "version": "9.9", "instance": "demo",
         "joints": "one\ntwo", "control_hz": "10"}  # fmt: skip
(OUT / "run").mkdir()
for name, seconds in (("demo-0001.mcap", range(6)), ("demo-0002-fault.mcap", range(6, 12))):
    f = File(OUT / "run" / name, FACTS)
    for s in seconds:
        f.chunk(second(s))
    f.finish()
f.path = OUT / "torn.mcap.part"
f.save(f.ends[3] + 1000)
f.path = OUT / "unfinished.mcap.part"
f.save(f.ends[3])
big = File(OUT / "big.mcap", FACTS)
for s in range(120):
    big.chunk([(BASE + s, 6, bytes(1 << 20))])
big.finish()
