"""An MCAP file through a reader that shares nothing with ours: record.py FILE… [-- CHECK…].
Uncompressed chunks only, so that nothing but python3-protobuf is needed. CHECKs are Python expressions
over: topics {name: [(log_ns, bytes)]}, events [(name, text)], ticks, inputs, seats, facts, span_s."""
import re
import struct
import sys
import zlib

from actd.v1 import record_pb2 as rec
from foxglove import Log_pb2 as fl

MAGIC = b"\x89MCAP0\r\n"
count = 0


def ok(what, condition, detail=""):
    global count
    count += 1
    print(f"{'' if condition else 'not '}ok {count} - record.py: {what}", flush=True)
    if not condition:
        print("#", str(detail)[:400])


def text(b, at):
    n, = struct.unpack_from("<I", b, at)
    return b[at + 4:at + 4 + n].decode(), at + 4 + n


def pairs(b, at):
    n, = struct.unpack_from("<I", b, at)
    end, out = at + 4 + n, {}
    at += 4
    while at < end:
        k, at = text(b, at)
        out[k], at = text(b, at)
    return out


def records(b, at, end):
    while at < end:
        op, n = struct.unpack_from("<BQ", b, at)
        assert at + 9 + n <= end, "a record beyond the end"
        yield op, b[at + 9:at + 9 + n], at
        at += 9 + n


class File:
    def __init__(self, path):
        self.b = b = open(path, "rb").read()
        self.channels, self.schemas, self.messages, self.facts, self.chunks = {}, {}, [], {}, 0
        assert b[:8] == MAGIC == b[-8:], "magic"
        self.ended = False
        for op, c, at in records(b, 8, len(b) - 8):
            self.record(op, c, at)

    def record(self, op, c, at):
        if op == 3:
            i, = struct.unpack_from("<H", c)
            self.schemas[i] = text(c, 2)[0]
        elif op == 4:
            i, s = struct.unpack_from("<HH", c)
            self.channels[i] = (text(c, 4)[0], s)
        elif op == 5:
            i, _, log, _ = struct.unpack_from("<HIQQ", c)
            assert i in self.channels, "a message before its channel"
            self.messages.append((log, self.channels[i][0], c[22:]))
        elif op == 6:
            start, end, size, crc = struct.unpack_from("<QQQI", c)
            how, at = text(c, 28)
            n, = struct.unpack_from("<Q", c, at)
            inner = c[at + 8:]
            assert how == "" and n == len(inner) == size and zlib.crc32(inner) == crc, "chunk"
            before = len(self.messages)
            for r in records(inner, 0, n):
                self.record(*r)
            times = [m[0] for m in self.messages[before:]]
            assert not times or (min(times), max(times)) == (start, end), "times of a chunk"
            self.chunks += 1
        elif op == 0xb:
            self.statistics = struct.unpack_from("<QHIIIIQQ", c)
        elif op == 0xc:
            name, at = text(c, 0)
            self.facts.update(pairs(c, at) if name == "actd" else {})
        elif op == 0xf:
            crc, = struct.unpack("<I", c)
            assert crc in (0, zlib.crc32(self.b[:at])), "crc of the data"
            self.ended = True


cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
files = []
for path in sys.argv[1:cut]:
    try:
        files.append(File(path))
        problem = "" if files[-1].ended else "no DataEnd"
    except (AssertionError, struct.error, UnicodeDecodeError) as e:
        problem = repr(e)
    ok(f"{re.sub('[0-9]{8}T[0-9]{6}Z', 'TIME', path.split('/')[-1])} is whole", not problem, problem)
for f in files:
    ok("statistics count what is there", f.statistics[0] == len(f.messages) and f.statistics[5] == f.chunks,
       (f.statistics, len(f.messages), f.chunks))
topics = {}
for f in files:
    for log, topic, data in f.messages:
        topics.setdefault(topic, []).append((log, data))
logs = [fl.Log.FromString(d) for _, d in topics.get("/events", [])]
events = [(m.name, m.message) for m in logs]
ticks = [rec.Tick.FromString(d) for _, d in topics.get("/tick", [])]
inputs = [rec.Input.FromString(d) for _, d in topics.get("/input", [])]
seats = [rec.Seat.FromString(d) for _, d in topics.get("/policy/seat", [])]
facts = files[0].facts if files else {}
times = [t for m in topics.values() for t, _ in m]
span_s = (max(times) - min(times)) / 1e9 if times else 0
for check in sys.argv[cut + 1:]:
    try:
        result, why = eval(check), ""
    except Exception as e:  # a check that can not be made has failed
        result, why = False, repr(e)
    ok(check, result, why or (sorted((k, len(v)) for k, v in topics.items()), events[-5:], span_s))
