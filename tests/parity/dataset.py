"""Data sets that LeRobot itself writes, through policy/convert/dataset_to_mcap.py and into actd.

    python dataset.py --actd BUILD/actd     in an environment with lerobot[dataset] and mcap

Three data sets: pictures as images, pictures as videos, and the second again in the layout of
v2.1. Of each: every state, action and time equal to the bit, every picture within what a JPEG loses
(and equal with --raw), as LeRobot itself reads them; then `actd replay eval` looks at every frame.
Prints a line of JSON for each comparison: [what, case, worst, bound, note].
"""

import argparse
import json
import math
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONVERT = ROOT / "policy" / "convert" / "dataset_to_mcap.py"
POLICY = ROOT / "config" / "policies" / "reach"
FPS = 25
NAMES = [
    f"{x}.pos"
    for x in "shoulder_pan shoulder_lift elbow_flex wrist_flex wrist_roll gripper".split()
]
SIZES = {"front": 96, "wrist": 64}
EPISODES = [30, 41, 17]
JPEG_BOUND = 4.0  # mean difference of a picture, of 255: quality 95 loses 1 on these


def row(what, case, worst, bound, note=""):
    print(json.dumps([what, case, min(float(worst), 1e300), bound, note]), flush=True)


# ---- data sets --------------------------------------------------------------------------------


def picture(rng, side, t):
    """Smooth, with an edge that moves: what a camera sees, more or less."""
    y, x = np.mgrid[0:side, 0:side] / side
    rgb = np.stack([x, y, 0.5 + 0.5 * np.sin(3 * x + t / 9)], -1) * 200
    rgb[int(side * 0.3) :, : 10 + t % (side - 20)] *= 0.4
    return (rgb + rng.uniform(0, 3, rgb.shape)).clip(0, 255).astype(np.uint8)


def make(root, videos):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    vector = {"dtype": "float32", "shape": (6,), "names": NAMES}
    features = {"observation.state": vector, "action": dict(vector)}
    for camera, side in SIZES.items():
        features[f"observation.images.{camera}"] = {
            "dtype": "video" if videos else "image",
            "shape": (side, side, 3),
            "names": ["height", "width", "channels"],
        }
    data = LeRobotDataset.create(
        "test/tiny", FPS, features, root=root, robot_type="so101", use_videos=videos
    )
    rng = np.random.default_rng(7)
    for n in EPISODES:
        for t in range(n):
            frame = {"task": "bring it\nthere"}
            for key in ("observation.state", "action"):
                frame[key] = rng.normal(0, 1, 6).astype(np.float32)
            if t == 3:  # what a careless writer gets wrong
                frame["action"] = np.array([0, -0.0, 1e-42, 999999, 1 / 3, -1], np.float32)
            for camera, side in SIZES.items():
                frame[f"observation.images.{camera}"] = picture(rng, side, t)
            data.add_frame(frame)
        data.save_episode()
    data.finalize()


def as_v21(source, root):
    """The same data set as LeRobot 0.3 laid it out: a file per episode."""
    import pyarrow.parquet as pq
    import pyarrow.compute as pc

    info = json.loads((source / "meta" / "info.json").read_text())
    (root / "meta").mkdir(parents=True)
    table = pq.read_table(sorted((source / "data").glob("*/*.parquet")))
    episodes = pq.read_table(sorted((source / "meta" / "episodes").glob("*/*.parquet"))).to_pylist()
    lines = []
    for e in episodes:
        i = e["episode_index"]
        rows = table.filter(pc.equal(table["episode_index"], i))
        out = root / f"data/chunk-000/episode_{i:06d}.parquet"
        out.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, out)
        for camera in SIZES:
            key = f"observation.images.{camera}"
            place = {k: e[f"videos/{key}/{k}"] for k in ("chunk_index", "file_index")}
            video = source / info["video_path"].format(video_key=key, **place)
            out = root / f"videos/chunk-000/{key}/episode_{i:06d}.mp4"
            out.parent.mkdir(parents=True, exist_ok=True)
            cut(video, e[f"videos/{key}/from_timestamp"], rows.num_rows, out)
        lines.append({"episode_index": i, "tasks": e["tasks"], "length": rows.num_rows})
    (root / "meta" / "episodes.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    info.update(
        codebase_version="v2.1",
        chunks_size=1000,
        data_path="data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        video_path="videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    )
    (root / "meta" / "info.json").write_text(json.dumps(info))


def cut(video, start, frames, out):
    """An episode of its own, without loss, so that pictures can be compared."""
    import av

    with av.open(str(video)) as source, av.open(str(out), "w") as sink:
        stream = sink.add_stream("libx264rgb", rate=FPS, options={"qp": "0", "preset": "fast"})
        first = source.streams.video[0]
        stream.width, stream.height, stream.pix_fmt = first.width, first.height, "rgb24"
        n = 0
        for frame in source.decode(first):
            if frame.time < start - 0.5 / FPS or n == frames:
                continue
            copy = av.VideoFrame.from_ndarray(frame.to_ndarray(format="rgb24"), format="rgb24")
            copy.pts, n = n, n + 1
            for packet in stream.encode(copy):
                sink.mux(packet)
        for packet in stream.encode(None):
            sink.mux(packet)


# ---- what LeRobot reads, what the converted file holds ------------------------------------------


def as_lerobot_reads(root):
    """[(episode, timestamp, state, action, {camera: picture})] of a v3 data set."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    data, out = LeRobotDataset("test/tiny", root=root), []
    for i in range(len(data)):
        x = data[i]
        pictures = {
            c: (x[f"observation.images.{c}"].numpy().transpose(1, 2, 0) * 255).round() for c in SIZES
        }
        out.append(
            (
                int(x["episode_index"]),
                np.float32(x["timestamp"].numpy()),
                x["observation.state"].numpy(),
                x["action"].numpy(),
                pictures,
            )
        )
    return out


def convert(root, out, *options):
    subprocess.run([sys.executable, CONVERT, root, "-o", out, "-q", *options], check=True)


def read(path):
    """{topic: [(log time, message)]}, and the metadata."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from mcap.reader import make_reader

    topics, classes = {}, {}
    with open(path, "rb") as f:
        reader = make_reader(f, validate_crcs=True)
        metadata = {m.name: m.metadata for m in reader.iter_metadata()}
        for schema, channel, m in reader.iter_messages():
            if schema.name not in classes:
                pool = descriptor_pool.DescriptorPool()
                for x in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
                    pool.AddSerializedFile(x.SerializeToString())
                classes[schema.name] = message_factory.GetMessageClass(
                    pool.FindMessageTypeByName(schema.name)
                )
            x = classes[schema.name].FromString(m.data)
            stamp = x.timestamp.seconds * 10**9 + x.timestamp.nanos
            assert stamp == m.log_time == m.publish_time
            topics.setdefault(channel.topic, []).append((m.log_time, x))
    return topics, metadata["dataset"]


def bits(values):
    return struct.pack(f"<{len(values)}f", *values)


def pixels(message):
    import io

    from PIL import Image

    if hasattr(message, "step"):
        return np.frombuffer(message.data, np.uint8).reshape(message.height, message.width, 3)
    return np.asarray(Image.open(io.BytesIO(message.data)).convert("RGB"))


def compare(case, want, path, raw):
    topics, metadata = read(path)
    episodes = [line.split(" ", 3) for line in metadata["episodes"].split("\n")]
    assert [int(e[2]) for e in episodes] == EPISODES, episodes
    assert metadata["state_names"].split("\n") == metadata["action_names"].split("\n") == NAMES
    start = {int(e[0]): int(e[1]) for e in episodes}
    wrong, worst = 0, 0.0
    for topic in ("/joint_states", "/action"):
        wrong += len(topics[topic]) != len(want)
    for i, (episode, stamp, state, action, pictures) in enumerate(want):
        for topic, vector in (("/joint_states", state), ("/action", action)):
            at, m = topics[topic][i]
            wrong += [j.name for j in m.joints] != NAMES
            # A double that a float32 was made of gives that float32 back, its bits included.
            wrong += bits([j.position for j in m.joints]) != vector.tobytes()
            wrong += not all(j.HasField("position") for j in m.joints)
            wrong += np.float32((at - start[episode]) / 1e9) != stamp
        for camera, rgb in pictures.items():
            at2, m = topics[f"/camera/{camera}" + ("/raw" if raw else "")][i]
            wrong += at2 != at
            worst = max(worst, float(np.abs(pixels(m) - rgb).mean()))
    row("values", case, wrong, 0.0, f"{len(want)} frames, states, actions, times")
    row("pictures", case, worst, 0.0 if raw else JPEG_BOUND, "mean difference, of 255")


def evaluate(actd, case, path):
    p = subprocess.run(
        [actd, "replay", "eval", path, "--policy", POLICY, "--json"], capture_output=True, text=True
    )
    if p.returncode:
        row("eval", case, math.inf, 0.0, p.stderr.strip()[:80])
        return
    got, frames = json.loads(p.stdout), sum(EPISODES)
    # Rows that reach beyond the end of an episode are not compared.
    rows = sum(min(got["rows"], n - t) for n in EPISODES for t in range(n))
    wrong = abs(got["asked"] - frames) + abs(got["all"]["values"] - rows * len(NAMES))
    row("eval", case, wrong, 0.0, f"{got['asked']} frames, {got['all']['values']} values")


def damage(root, tmp):
    """What is wrong is said, and with which status."""
    cases = {
        66: (lambda d: shutil.rmtree(d / "data"), "is the data set complete"),
        65: (lambda d: (d / "meta/info.json").write_text("{}"), "no description"),
    }
    wrong = 0
    for status, (harm, words) in cases.items():
        bad = tmp / f"bad{status}"
        shutil.copytree(root, bad)
        harm(bad)
        p = subprocess.run(
            [sys.executable, CONVERT, bad, "-o", tmp / "bad.mcap"], capture_output=True, text=True
        )
        wrong += p.returncode != status or words not in p.stderr
        wrong += (tmp / "bad.mcap").exists() or (tmp / "bad.mcap.part").exists()
    row("refused", "damaged", wrong, 0.0, "missing data, no description")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--actd", type=Path, help="the program; without it, eval is left out")
    p.add_argument("--keep", type=Path, help="leave the data sets and files there")
    a = p.parse_args()
    tmp = Path(a.keep or tempfile.mkdtemp(prefix="actd-dataset-"))
    tmp.mkdir(exist_ok=True)
    make(tmp / "images", False)
    make(tmp / "videos", True)
    as_v21(tmp / "videos", tmp / "v21")
    for case in ("images", "videos", "v21"):
        want = as_lerobot_reads(tmp / ("images" if case == "images" else "videos"))
        for raw in (False, True):
            name = f"dataset {case}" + (" raw" if raw else "")
            out = tmp / f"{case}{'-raw' if raw else ''}.mcap"
            convert(tmp / case, out, *(["--raw"] if raw else []))
            compare(name, want, out, raw)
            if a.actd:
                evaluate(a.actd, name, out)
    damage(tmp / "images", tmp)
    if not a.keep:
        shutil.rmtree(tmp)


if __name__ == "__main__":
    main()
