"""Real recordings in other people's readers: the MCAP package and its protobuf decoder of PyPI, Pillow
for the pictures, and the MCAP loader of Rerun's SDK. The desktop viewers use the same formats.

    python viewers.py [--build DIR] [--keep DIR]

Drives the simulated arm with the shipped policy three times, recording with zstd, lz4 and without
compression, while a subscriber of its own hears every command; then every file must have, by each
reader, the messages that its statistics count, the commands that were heard, byte for byte, joint
states that are those of the ticks, pictures that are pictures. Exits with 0 when all of it is true.
"""
import argparse
import collections
import io
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import zmq
from mcap.reader import make_reader
from mcap.stream_reader import StreamReader
from mcap_protobuf.decoder import DecoderFactory
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent
JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
SIZES = {"/camera/front": (96, 96), "/camera/wrist": (64, 64)}
SCHEMAS = {
    "/joint_states": "foxglove.JointStates",
    "/camera/front": "foxglove.CompressedImage",
    "/camera/wrist": "foxglove.CompressedImage",
    "/command": "actd.v1.JointCommand",
    "/tick": "actd.v1.Tick",
    "/input": "actd.v1.Input",
    "/policy/chunk": "actd.v1.Chunk",
    "/policy/seat": "actd.v1.Seat",
    "/events": "foxglove.Log",
}
failed = 0


def check(what, good, detail=""):
    global failed
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {what}{'' if good else f': {str(detail)[:300]}'}", flush=True)


# ---- a recording ------------------------------------------------------------------------------


class Run:
    """One short run; .files and what the driver would have heard, .heard."""

    def __init__(self, build, where, compression, seconds=5.0):
        where.mkdir()
        self.config, self.heard, self.stop = where / "robot.yaml", [], threading.Event()
        text = (ROOT / "config" / "reach.yaml").read_text()
        text = re.sub(r"(?m)^instance: .*", f"instance: view\nruntime: {where}/run", text)
        text = text.replace("directory: policies/reach", f"directory: {ROOT}/config/policies/reach")
        text += f"\nrecord: {{mode: always, directory: {where}/rec, compression: {compression}}}\n"
        self.config.write_text(text)
        self.config.chmod(0o600)
        (where / "run").mkdir(mode=0o750)
        sim = self.start(build / "actd-sim", "--runtime", where / "run", "--episodes", "0")
        actd = self.start(build / "actd", "run", "-c", self.config, "--arm", log=where / "actd.log")
        listener = threading.Thread(target=self.listen, args=(f"ipc://{where}/run/joints.command",))
        listener.start()
        end = time.monotonic() + 60
        while " RUNNING" not in (where / "actd.log").read_text() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(seconds)
        actd.send_signal(signal.SIGTERM)
        check(f"{compression}: the daemon ends well", actd.wait(30) == 0)
        self.stop.set()
        listener.join()
        sim.send_signal(signal.SIGTERM)
        sim.wait(30)
        self.files = sorted((where / "rec").glob("*.mcap"))
        check(f"{compression}: one whole file", len(self.files) == 1
              and not list((where / "rec").glob("*.part")), self.files)

    @staticmethod
    def start(*command, log=None):
        out = open(log, "w") if log else subprocess.DEVNULL
        return subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def listen(self, endpoint):
        context = zmq.Context()
        sub = context.socket(zmq.SUB)
        sub.setsockopt(zmq.SUBSCRIBE, b"")
        sub.setsockopt(zmq.RCVTIMEO, 100)
        sub.setsockopt(zmq.RCVHWM, 100000)
        sub.connect(endpoint)
        while not self.stop.is_set():
            try:
                self.heard.append(sub.recv())
            except zmq.Again:
                pass
        sub.close(0)
        context.term()


# ---- PyPI's mcap ------------------------------------------------------------------------------


def with_mcap(path, heard):
    reader = make_reader(open(path, "rb"), validate_crcs=True)
    summary = reader.get_summary()
    topic = {c.id: c.topic for c in summary.channels.values()}
    want = {topic[i]: n for i, n in summary.statistics.channel_message_counts.items() if n}
    raw, times = collections.defaultdict(list), collections.defaultdict(list)
    for schema, channel, message in reader.iter_messages():
        raw[channel.topic].append(message.data)
        times[channel.topic].append(message.log_time)
        if channel.topic in SCHEMAS and (schema is None or schema.name != SCHEMAS[channel.topic]):
            check(f"{channel.topic} has its schema", False, schema)
    check("indexed: as many messages as the statistics say", {t: len(m) for t, m in raw.items()} == want,
          ({t: len(m) for t, m in raw.items()}, want))
    check("every topic is there", set(SCHEMAS) | {"/keyframe"} == set(want), sorted(want))
    streamed = collections.Counter()
    channels = {}
    for record in StreamReader(open(path, "rb"), validate_crcs=True).records:
        if type(record).__name__ == "Channel":
            channels[record.id] = record.topic
        elif type(record).__name__ == "Message":
            streamed[channels[record.channel_id]] += 1
    check("streamed: the same", dict(streamed) == want, streamed)
    check("every command that was heard is in it, byte for byte",
          len(heard) > 300 and set(heard) <= set(raw["/command"]), (len(heard), len(set(heard) - set(raw["/command"]))))
    facts = next(m for m in reader.iter_metadata() if m.name == "actd").metadata
    check("the metadata say who, with what, and when", facts["instance"] == "view" and "record:" in facts["config"]
          and len(facts["exe_sha256"]) == 64 and int(facts["base_ns"]) > 0 and facts["joints"].split() == JOINTS)
    return want, facts


def with_protobuf(path, facts):
    reader = make_reader(open(path, "rb"), decoder_factories=[DecoderFactory()])
    got = collections.defaultdict(list)
    for m in reader.iter_decoded_messages(topics=list(SCHEMAS)):
        got[m.channel.topic].append((m.message.log_time, m.decoded_message))
    base = int(facts["base_ns"])
    states = dict(got["/joint_states"])
    sample = {i.joint_sample: i for _, i in got["/input"] if i.stream == 0 and i.outcome == 0 and i.joint_sample}
    checked = 0
    for _, t in got["/tick"]:
        if t.joint_sample in sample:
            s = states[sample[t.joint_sample].at_ns + base]
            position = {j.name: j.position for j in s.joints}
            checked += 1
            if list(t.measured) != [position[j] for j in JOINTS]:
                check("ticks measured what the joint states said", False, (t.tick, list(t.measured), position))
                return got
    check(f"ticks measured what the joint states said ({checked} ticks)", checked > 300, checked)
    commanded = {c.sequence: [j.position for j in c.joints] for _, c in got["/command"]}
    ticks = [t for _, t in got["/tick"] if t.sequence in commanded]
    check(f"ticks commanded what the commands said ({len(ticks)} ticks)", len(ticks) > 300
          and all(list(t.commanded) == commanded[t.sequence] for t in ticks))
    chunks = [c for _, c in got["/policy/chunk"]]
    check(f"chunks are whole and finite ({len(chunks)})", len(chunks) > 5 and all(
        len(c.row) == c.rows * c.joints == 24 * 6 and all(map(math.isfinite, c.row)) for c in chunks))
    check("the policy is named", [(s.generation, s.name) for _, s in got["/policy/seat"]] == [(1, "reach")])
    check("events are those of the log", any("-> RUNNING" in e.message for _, e in got["/events"]))
    return got


def with_pillow(got):
    for topic, size in SIZES.items():
        images = []
        for _, m in got[topic]:
            image = Image.open(io.BytesIO(m.data))
            image.load()
            images.append(image)
        different = len({i.tobytes() for i in images})
        check(f"{topic}: {len(images)} pictures of {size[0]}x{size[1]}, {different} different",
              len(images) > 50 and {i.size for i in images} == {size} and {i.format for i in images} == {"JPEG"}
              and {m.format for _, m in got[topic]} == {"jpeg"} and different > 20
              and all(max(high for _, high in i.getextrema()) > 64 for i in images))


# ---- Rerun's loader ---------------------------------------------------------------------------


def with_rerun(path, want, got):
    from rerun.chunk import McapReader

    reader = McapReader(str(path))
    rows, joints, ticks, pictures, texts = collections.Counter(), [], [], [], []
    for chunk in reader.stream():
        if chunk.is_static:
            continue
        rows[chunk.entity_path] += chunk.num_rows
        batch = chunk.to_record_batch()
        for name in batch.schema.names:
            if name == "foxglove.JointStates:message":
                joints += [m[0] for m in batch.column(name).to_pylist()]
            elif name == "actd.v1.Tick:message":
                ticks += [m[0] for m in batch.column(name).to_pylist()]
            elif name == "EncodedImage:blob" and chunk.entity_path == "/camera/front":
                pictures += [bytes(m[0]) for m in batch.column(name).to_pylist()]
            elif name == "TextLog:text":
                texts += [m[0] for m in batch.column(name).to_pylist()]
    check("Rerun: the summary is ours", reader.info().summary_source == "embedded")
    check("Rerun: as many rows as messages", dict(rows) == want, (dict(rows), want))
    ours = [[(j.name, j.position) for j in m.joints] for _, m in got["/joint_states"]]
    check("Rerun: joint states by reflection",
          sorted([(j["name"], j["position"]) for j in m["joints"]] for m in joints) == sorted(ours))
    check("Rerun: ticks by reflection, arrays for plots",
          sorted((t["tick"], tuple(t["measured"])) for t in ticks)
          == sorted((t.tick, tuple(t.measured)) for _, t in got["/tick"]))
    check("Rerun: pictures as pictures", sorted(pictures) == sorted(bytes(m.data) for _, m in got["/camera/front"]))
    check("Rerun: events as text", sorted(texts) == sorted(m.message for _, m in got["/events"]), texts[:3])


def rerun_check(path):
    tool = Path(sys.executable).with_name("rerun")
    p = subprocess.run([tool, "mcap", "check", "--full", path], capture_output=True, text=True)
    check("rerun mcap check --full finds nothing", p.returncode == 0
          and not re.search(r"(?m)^(error|warning|fail)", p.stdout), p.stdout + p.stderr)


def main():
    p = argparse.ArgumentParser(description="recordings in PyPI's mcap, Pillow and rerun-sdk")
    p.add_argument("--build", type=Path, default=ROOT / "build")
    p.add_argument("--keep", type=Path, help="leave the recordings there")
    args = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="actd-viewers.") as tmp:
        where = args.keep or Path(tmp)
        where.mkdir(exist_ok=True)
        os.environ["XDG_STATE_HOME"] = str(where / "state")
        for compression in ("zstd", "lz4", "none"):
            run = Run(args.build.resolve(), where / compression, compression)
            for path in run.files:
                print(f"-- {path.name}, {compression}, {path.stat().st_size / 1e6:.1f} MB")
                want, facts = with_mcap(path, run.heard)
                got = with_protobuf(path, facts)
                with_pillow(got)
                with_rerun(path, want, got)
                rerun_check(path)
    print(f"viewers: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
