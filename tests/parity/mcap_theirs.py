"""PyPI's MCAP package against `actd log`, both ways.

    python mcap_theirs.py [--build DIR]

1. It writes (zstd, lz4, none; chunked and not), we read: `actd log cat` has every message, its times
   and its bytes; protobuf as its own decoder has it; `info` the counts.
2. We write (`actd log recover`, `cut`), it reads: by index and as a stream, with every CRC checked.
3. Torn and damaged files of its writer, which its own readers refuse, are recovered, and read by it.

Exits with 0 when all of it is true.
"""
import argparse
import base64
import io
import json
import random
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.type_pb2 import Field
from mcap.reader import NonSeekingReader, make_reader
from mcap.writer import CompressionType, IndexType, Writer
from mcap_protobuf.decoder import DecoderFactory
from mcap_protobuf.writer import Writer as ProtobufWriter

ROOT = Path(__file__).resolve().parent.parent.parent
failed = 0


def check(what, good, detail=""):
    global failed
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {what}{'' if good else f': {str(detail)[:300]}'}", flush=True)


def actd(build, *args, status=0):
    p = subprocess.run([build / "actd", "log", *map(str, args)], capture_output=True, text=True)
    if p.returncode != status:
        check(f"actd log {args[0]}", False, f"exit {p.returncode}: {p.stderr}")
    return p.stdout


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def theirs(data, stream=False):
    reader = (NonSeekingReader if stream else make_reader)(io.BytesIO(data), validate_crcs=True)
    return [
        (c.topic, m.log_time, m.publish_time, m.sequence, m.data)
        for _, c, m in reader.iter_messages()
    ]


def ours(build, path, status=0):
    return [
        (m["topic"], m["log_time"], m["publish_time"], m["sequence"], base64.b64decode(m["base64"]))
        for m in lines(actd(build, "cat", path, status=status))
    ]


# ---- files that it writes ---------------------------------------------------------------------


def write(path, compression, chunked, seed):
    """3000 messages on four channels, their times in no order."""
    rng = random.Random(seed)
    with open(path, "wb") as f:
        w = Writer(f, chunk_size=rng.choice([500, 20000, 1 << 20]), compression=compression,
                   use_chunking=chunked, enable_data_crcs=True, index_types=IndexType.ALL)  # fmt: skip
        w.start("profile", "theirs")
        schema = w.register_schema("a.B", "ros1msg", b"x" * 100)
        channels = [
            w.register_channel(f"/topic/{i}", "cdr", schema if i else 0, {"key": "value"})
            for i in range(4)
        ]
        w.add_metadata("some", {"a": "1", "b": "2\n3"})
        for i in range(3000):
            w.add_message(rng.choice(channels), log_time=10**18 + i * 1000 - rng.randrange(50000),
                          publish_time=rng.randrange(1 << 62), sequence=i,
                          data=rng.randbytes(rng.choice([0, 1, 30, 300])))  # fmt: skip
        w.add_attachment(1, 2, "name", "text/plain", b"hello" * 100)
        w.finish()
    return path.read_bytes()


def read_and_write_again(build, where):
    for compression in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
        for chunked in (True, False):
            name = f"{compression.name.lower()}{'' if chunked else ', not chunked'}"
            path = where / "theirs.mcap"
            data = write(path, compression, chunked, zlib.crc32(name.encode()))
            want = theirs(data)
            check(f"{name}: we read what it wrote", ours(build, path) == want)
            info = json.loads(actd(build, "info", path, "--json"))
            check(f"{name}: and count it", info["messages"] == 3000 and not info["damaged"]
                  and {t: v["messages"] for t, v in info["topics"].items()}
                  == {f"/topic/{i}": sum(m[0] == f"/topic/{i}" for m in want) for i in range(4)})  # fmt: skip
            actd(build, "recover", path, "-o", where / "ours.mcap")
            again = (where / "ours.mcap").read_bytes()
            check(f"{name}: it reads what we wrote of that, by index", theirs(again) == want)
            check(f"{name}: and as a stream", sorted(theirs(again, True)) == sorted(want))
            reader = make_reader(io.BytesIO(again), validate_crcs=True)
            s, a, m = reader.get_summary(), list(reader.iter_attachments()), list(reader.iter_metadata())
            check(f"{name}: statistics, attachment, metadata", s.statistics.message_count == 3000
                  and s.statistics.channel_count == 4 and s.statistics.schema_count == 1
                  and a[0].data == b"hello" * 100 and m[0].metadata == {"a": "1", "b": "2\n3"})  # fmt: skip
            actd(build, "cut", path, "--from", 0.001, "--to", 0.002, "-o", where / "cut.mcap")
            begin = min(m[1] for m in want)
            part = [m for m in want if begin + 10**6 <= m[1] < begin + 2 * 10**6]
            check(f"{name}: and a part of it", theirs((where / "cut.mcap").read_bytes()) == part)


def damaged(build, where):
    for compression in (CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD):
        path = where / "theirs.mcap"
        data = bytearray(write(path, compression, True, 77))
        want = set(theirs(bytes(data)))
        for what in ("torn", "flipped"):
            bad = bytearray(data)
            if what == "torn":
                del bad[len(bad) * 2 // 3 :]
            else:
                bad[len(bad) // 2] ^= 4
            path.write_bytes(bad)
            actd(build, "recover", path, "-o", where / "ours.mcap", status=1)
            got = theirs((where / "ours.mcap").read_bytes())
            check(f"{compression.name.lower()}, {what}: what was saved is read by it, {len(got)} of 3000",
                  set(got) < want and len(got) == len(set(got)))  # fmt: skip


# ---- protobuf ---------------------------------------------------------------------------------


def simplify(m):
    """A decoded message as `actd log cat` has it."""
    out = {}
    for d, v in m.ListFields():
        def one(x, d=d):
            if d.message_type:
                return simplify(x)
            if d.enum_type:
                known = d.enum_type.values_by_number.get(x)
                return known.name if known else x
            if isinstance(x, bytes):
                return f"{len(x)} bytes" if len(x) > 32 else base64.b64encode(x).decode()
            return x
        out[d.name] = [one(x) for x in v] if d.is_repeated else one(v)
    return out


def field():
    return Field(kind=9, cardinality=3, number=-7, name='q"\\\n\u20ac', oneof_index=2, packed=True,
                 json_name="", options=[])  # fmt: skip


def protobuf(build, where):
    path = where / "protobuf.mcap"
    stamp = Timestamp(seconds=-5, nanos=999999999)
    with open(path, "wb") as f:
        w = ProtobufWriter(f)
        for i in range(10):
            w.write_message("/stamp", stamp, log_time=i, publish_time=i)
            w.write_message("/field", field(), log_time=i, publish_time=i)
        w.finish()
    decoded = [
        simplify(m.decoded_message)
        for m in make_reader(
            open(path, "rb"), decoder_factories=[DecoderFactory()]
        ).iter_decoded_messages()
    ]
    got = [m.get("message") for m in lines(actd(build, "cat", path))]
    check("protobuf: decoded as its decoder has it", got == decoded and len(got) == 20, (got[:2], decoded[:2]))


def main():
    p = argparse.ArgumentParser(description="PyPI's MCAP package against actd log")
    p.add_argument("--build", type=Path, default=ROOT / "build")
    build = p.parse_args().build.resolve()
    with tempfile.TemporaryDirectory() as where:
        read_and_write_again(build, Path(where))
        damaged(build, Path(where))
        protobuf(build, Path(where))
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
