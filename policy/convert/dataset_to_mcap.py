#!/usr/bin/env python3
"""A LeRobot data set (v3.x or v2.1) as one MCAP file, for `actd replay eval` and for viewers.

    dataset_to_mcap.py DATASET_DIR -o OUT.mcap [--episodes 0,3-5] [--raw | --quality 95]

DATASET_DIR is the directory that has meta/info.json in it. Needs: pip install mcap protobuf pyarrow
pillow, and av when the pictures are videos. See README.md for what is written.
"""

import argparse
import io
import json
import sys
from pathlib import Path

BASE_NS = 946684800 * 10**9  # 2000-01-01: where the first episode begins
GAP_NS = 60 * 10**9  # between episodes: longer than any chunk of actions
STATE, ACTION = "observation.state", "action"
IMAGES = "observation.images."

EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT = 0, 64, 65, 66


class Refused(Exception):
    """What is wrong, and what to do: one sentence."""

    def __init__(self, text, status=EX_DATAERR):
        super().__init__(text)
        self.status = status


def needed(module, package):
    try:
        return __import__(module, fromlist=["_"])
    except ImportError:
        raise Refused(f"Python has no {module}: pip install {package}", 69) from None


# ---- messages: Foxglove's public schemas, made here so that no generated file is needed -------


def schemas():
    """{name: (message class, FileDescriptorSet bytes)}"""
    pb = needed("google.protobuf.descriptor_pb2", "protobuf")
    pool_of = needed("google.protobuf.descriptor_pool", "protobuf")
    factory = needed("google.protobuf.message_factory", "protobuf")
    stamp_file = needed("google.protobuf.timestamp_pb2", "protobuf").DESCRIPTOR
    F = pb.FieldDescriptorProto
    stamp = ("timestamp", 1, F.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    fields = {
        "JointStates": [stamp, ("joints", 2, F.TYPE_MESSAGE, ".foxglove.JointState")],
        "CompressedImage": [
            stamp,
            ("data", 2, F.TYPE_BYTES, None),
            ("format", 3, F.TYPE_STRING, None),
            ("frame_id", 4, F.TYPE_STRING, None),
        ],
        "RawImage": [
            stamp,
            ("width", 2, F.TYPE_FIXED32, None),
            ("height", 3, F.TYPE_FIXED32, None),
            ("encoding", 4, F.TYPE_STRING, None),
            ("step", 5, F.TYPE_FIXED32, None),
            ("data", 6, F.TYPE_BYTES, None),
            ("frame_id", 7, F.TYPE_STRING, None),
        ],
    }
    joint = [("name", 1, F.TYPE_STRING, None)] + [
        (name, i, F.TYPE_DOUBLE, None)
        for i, name in enumerate(("position", "velocity", "acceleration", "effort"), 2)
    ]
    first = pb.FileDescriptorProto()
    stamp_file.CopyToProto(first)
    out, pool = {}, pool_of.DescriptorPool()
    pool.Add(first) if hasattr(pool, "Add") else pool.AddSerializedFile(first.SerializeToString())
    for name, rows in fields.items():
        f = pb.FileDescriptorProto(name=f"foxglove/{name}.proto", package="foxglove", syntax="proto3")
        f.dependency.append(first.name)
        if name == "JointStates":
            add_message(f, "JointState", joint, optional=True)
        add_message(f, name, rows)
        pool.AddSerializedFile(f.SerializeToString())
        cls = factory.GetMessageClass(pool.FindMessageTypeByName(f"foxglove.{name}"))
        out[name] = cls, pb.FileDescriptorSet(file=[first, f]).SerializeToString()
    return out


def add_message(f, name, rows, optional=False):
    m = f.message_type.add(name=name)
    for field, number, kind, type_name in rows:
        x = m.field.add(name=field, number=number, type=kind)
        x.label = x.LABEL_REPEATED if field == "joints" else x.LABEL_OPTIONAL
        if type_name:
            x.type_name = type_name
        if optional and field != "name":  # a position of 0 is sent, and told from none
            x.proto3_optional, x.oneof_index = True, len(m.oneof_decl)
            m.oneof_decl.add(name="_" + field)


# ---- the data set -----------------------------------------------------------------------------


def flat_names(feature, what):
    """Names of a vector's values: a list, or (before v3) lists in a dictionary; else numbers."""
    names, n = feature.get("names"), feature["shape"][0]
    if isinstance(names, dict):
        names = [x for v in names.values() for x in (v if isinstance(v, list) else [v])]
    if not names or len(names) != n:
        names = [f"{what}_{i}" for i in range(n)]
    names = [str(x) for x in names]
    if len(set(names)) != n or any("\n" in x for x in names):
        raise Refused(f"meta/info.json: the names of {what} are not unique")
    return names


class Dataset:
    def __init__(self, root):
        self.root = Path(root)
        info = self.root / "meta" / "info.json"
        if not info.is_file():
            raise Refused(f"{info}: not there; name the directory that holds meta/", EX_NOINPUT)
        try:
            self.info = json.loads(info.read_text())
            self.version, self.fps = self.info["codebase_version"], float(self.info["fps"])
            self.features = self.info["features"]
        except (ValueError, KeyError) as e:
            raise Refused(f"{info}: is no description of a data set ({e!r})") from None
        if not (self.version.startswith("v3.") or self.version in ("v2.0", "v2.1")):
            raise Refused(f"{info}: version {self.version}; this reads v3.x and v2.1")
        if ACTION not in self.features:
            raise Refused(f"{info}: has no feature 'action', so nothing can be compared with it")
        self.action_names = flat_names(self.features[ACTION], "action")
        has_state = STATE in self.features
        self.state_names = flat_names(self.features[STATE], "state") if has_state else []
        self.cameras = {  # topic's name: key
            k[len(IMAGES) :] if k.startswith(IMAGES) else k.rsplit(".", 1)[-1]: k
            for k, f in self.features.items()
            if f["dtype"] in ("video", "image")
        }
        self.pq = needed("pyarrow.parquet", "pyarrow")
        self.tables = {}
        self.episodes = self.read_v3() if self.version.startswith("v3.") else self.read_v2()

    def table(self, path):
        """Rows of a file of data; the newest one stays, since episodes come in order."""
        path = self.root / path
        if path not in self.tables:
            if not path.is_file():
                raise Refused(f"{path}: not there: is the data set complete?", EX_NOINPUT)
            self.tables = {path: self.pq.read_table(path)}
        return self.tables[path]

    def read_v3(self):
        out = {}
        files = sorted((self.root / "meta" / "episodes").glob("*/*.parquet"))
        if not files:
            raise Refused(f"{self.root}/meta/episodes: no table of episodes", EX_NOINPUT)
        for f in files:
            columns = [c for c in self.pq.read_schema(f).names if not c.startswith("stats/")]
            for e in self.pq.read_table(f, columns=columns).to_pylist():
                place = {"chunk_index": e["data/chunk_index"], "file_index": e["data/file_index"]}
                videos = {}
                for key in self.cameras.values():
                    v = f"videos/{key}/"
                    if v + "chunk_index" in e:
                        where = {"chunk_index": e[v + "chunk_index"]}
                        where["file_index"] = e[v + "file_index"]
                        path = self.info["video_path"].format(video_key=key, **where)
                        videos[key] = path, float(e[v + "from_timestamp"])
                out[e["episode_index"]] = {
                    "data": self.info["data_path"].format(**place),
                    "videos": videos,
                    "task": ", ".join(e.get("tasks") or []),
                }
        return out

    def read_v2(self):
        out = {}
        path = self.root / "meta" / "episodes.jsonl"
        if not path.is_file():
            raise Refused(f"{path}: not there: is the data set complete?", EX_NOINPUT)
        for line in path.read_text().splitlines():
            if not line.strip():
                continue
            e = json.loads(line)
            i = e["episode_index"]
            place = {"episode_chunk": i // self.info["chunks_size"], "episode_index": i}
            out[i] = {
                "data": self.info["data_path"].format(**place),
                "videos": {
                    k: (self.info["video_path"].format(video_key=k, **place), 0.0)
                    for k in self.cameras.values()
                    if self.features[k]["dtype"] == "video"
                },
                "task": ", ".join(e.get("tasks") or []),
            }
        return out

    def rows(self, index):
        """The rows of an episode, in the order of their frames: a table."""
        import pyarrow.compute as pc

        t = self.table(self.episodes[index]["data"])
        t = t.filter(pc.equal(t["episode_index"], index))
        return t.sort_by("frame_index")

    def pictures(self, index, key, table):
        """An (h, w, 3) array for each row."""
        if self.features[key]["dtype"] == "video":
            path, start = self.episodes[index]["videos"][key]
            yield from video_frames(
                self.root / path, [start + t for t in table["timestamp"].to_pylist()], self.fps
            )
            return
        image = needed("PIL.Image", "pillow")
        np = needed("numpy", "numpy")
        for cell in table[key]:
            cell = cell.as_py()
            if cell.get("bytes"):
                source = io.BytesIO(cell["bytes"])
            else:
                source = self.root / cell["path"]
            yield np.asarray(image.open(source).convert("RGB"))


def video_frames(path, times, fps):
    """For each of the times (ascending) the frame that is nearest to it, as LeRobot takes it."""
    av = needed("av", "av")
    if not path.is_file():
        raise Refused(f"{path}: not there: is the data set complete?", EX_NOINPUT)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        if times and times[0] > 0:
            container.seek(int(times[0] / stream.time_base), stream=stream, backward=True)
        before, i = None, 0
        for frame in container.decode(stream):
            now = float(frame.pts * stream.time_base)
            while i < len(times) and now >= times[i]:
                best = frame
                if before and times[i] - before[0] < now - times[i]:
                    best = before[1]
                yield near(path, best, times[i], stream, fps)
                i += 1
            if i == len(times):
                return
            before = now, frame
        while i < len(times) and before:
            yield near(path, before[1], times[i], stream, fps)
            i += 1


def near(path, frame, at, stream, fps):
    off = abs(float(frame.pts * stream.time_base) - at)
    if off > 0.5 / fps:
        raise Refused(f"{path}: no frame at {at:.3f} s, the nearest is {off:.3f} s off")
    return frame.to_ndarray(format="rgb24")


# ---- writing ----------------------------------------------------------------------------------


class Output:
    def __init__(self, stream, raw, quality):
        self.types = schemas()
        self.writer = needed("mcap.writer", "mcap").Writer(stream)
        self.raw, self.quality = raw, quality
        self.channels, self.schema_ids = {}, {}
        self.writer.start(profile="", library="actd dataset_to_mcap")

    def channel(self, topic, kind):
        if topic not in self.channels:
            if kind not in self.schema_ids:
                self.schema_ids[kind] = self.writer.register_schema(
                    name=f"foxglove.{kind}", encoding="protobuf", data=self.types[kind][1]
                )
            self.channels[topic] = self.writer.register_channel(
                topic=topic, message_encoding="protobuf", schema_id=self.schema_ids[kind]
            )
        return self.channels[topic]

    def put(self, topic, kind, at_ns, message):
        message.timestamp.seconds, message.timestamp.nanos = divmod(at_ns, 10**9)
        self.writer.add_message(
            channel_id=self.channel(topic, kind),
            log_time=at_ns,
            publish_time=at_ns,
            data=message.SerializeToString(),
        )

    def joints(self, topic, at_ns, names, values):
        m = self.types["JointStates"][0]()
        for name, value in zip(names, values):
            m.joints.add(name=name, position=value)
        self.put(topic, "JointStates", at_ns, m)

    def picture(self, camera, at_ns, rgb):
        h, w = rgb.shape[:2]
        kind = "RawImage" if self.raw else "CompressedImage"
        m = self.types[kind][0](frame_id=camera)
        if self.raw:
            m.width, m.height, m.encoding, m.step, m.data = w, h, "rgb8", 3 * w, rgb.tobytes()
        else:
            out = io.BytesIO()
            image = needed("PIL.Image", "pillow").fromarray(rgb)
            image.save(out, "JPEG", quality=self.quality, subsampling=0)
            m.data, m.format = out.getvalue(), "jpeg"
        self.put(f"/camera/{camera}" + ("/raw" if self.raw else ""), kind, at_ns, m)


def vectors(table, key):
    """Rows of a vector as Python floats: a float32 is a double exactly."""
    return [x if isinstance(x, list) else [x] for x in table[key].to_pylist()]


def convert_episode(data, out, index, start_ns):
    """Returns the number of frames, and the log time of the last one."""
    table = data.rows(index)
    if table.num_rows == 0:
        raise Refused(f"episode {index} has no frames in {data.episodes[index]['data']}")
    at = [start_ns + round(t * 1e9) for t in table["timestamp"].to_pylist()]
    actions = vectors(table, ACTION)
    states = vectors(table, STATE) if data.state_names else None
    pictures = {c: data.pictures(index, k, table) for c, k in data.cameras.items()}
    for i, now in enumerate(at):
        if states:
            out.joints("/joint_states", now, data.state_names, states[i])
        for camera, frames in pictures.items():
            rgb = next(frames, None)
            if rgb is None:
                raise Refused(f"episode {index}: {camera} ends at frame {i} of {len(at)}")
            out.picture(camera, now, rgb)
        out.joints("/action", now, data.action_names, actions[i])
    return len(at), at[-1]


def chosen(text, there):
    if not text:
        return sorted(there)
    out = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            out += range(int(first), int(last or first) + 1)
    except ValueError:
        raise Refused(f"--episodes {text}: wants numbers and ranges: 0,3-5", EX_USAGE) from None
    missing = [i for i in out if i not in there]
    if missing:
        raise Refused(f"--episodes: there is no episode {missing[0]}", EX_USAGE)
    return out


def convert(data, out, episodes, say):
    start, lines = BASE_NS, []
    for n, index in enumerate(episodes):
        frames, last = convert_episode(data, out, index, start)
        lines.append(f"{index} {start} {frames} {data.episodes[index]['task']}".replace("\n", " "))
        say(f"episode {index}: {frames} frames ({n + 1} of {len(episodes)})")
        start = last + GAP_NS
    out.writer.add_metadata(
        "dataset",
        {
            "name": data.root.resolve().name,
            "version": data.version,
            "robot_type": str(data.info.get("robot_type") or ""),
            "fps": f"{data.fps:g}",
            "state_names": "\n".join(data.state_names),
            "action_names": "\n".join(data.action_names),
            "cameras": "\n".join(f"{c}={k}" for c, k in data.cameras.items()),
            "episodes": "\n".join(lines),
        },
    )
    out.writer.finish()


def parse(argv):
    p = argparse.ArgumentParser(
        prog="dataset_to_mcap.py",
        description="A LeRobot data set (v3.x, v2.1) as one MCAP file for `actd replay eval`.",
        epilog="exit status: 0 written, 64 usage, 65 the data set is refused, 66 a file is "
        "missing, 69 a Python package is missing, 73 the output cannot be written",
    )
    p.add_argument("dataset", type=Path, help="the directory with meta/info.json in it")
    p.add_argument("-o", "--output", type=Path, required=True, help="the .mcap to write")
    p.add_argument("--episodes", help="only these: 0,3-5")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--raw", action="store_true", help="pictures without any loss (large)")
    how.add_argument("--quality", type=int, default=95, help="of the JPEGs, 1 ... 100 (95)")
    p.add_argument("-q", "--quiet", action="store_true")
    p.error = lambda message: (p.print_usage(sys.stderr), sys.exit(refuse(message, EX_USAGE)))
    a = p.parse_args(argv)
    if not 1 <= a.quality <= 100:
        p.error("--quality wants 1 ... 100")
    return a


def refuse(text, status):
    print(f"dataset_to_mcap: {text}", file=sys.stderr)
    return status


def main(argv=None):
    a = parse(argv)
    part = a.output.with_name(a.output.name + ".part")
    try:
        data = Dataset(a.dataset)
        episodes = chosen(a.episodes, data.episodes)
        with open(part, "wb") as f:
            convert(data, Output(f, a.raw, a.quality), episodes, lambda s: a.quiet or print(s))
        part.replace(a.output)
    except Refused as e:
        part.unlink(missing_ok=True)
        return refuse(str(e), e.status)
    except OSError as e:
        part.unlink(missing_ok=True)
        return refuse(f"{e.filename or a.output}: {e.strerror}", 73)
    return EX_OK


if __name__ == "__main__":
    sys.exit(main())
