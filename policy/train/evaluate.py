#!/usr/bin/env python3
"""Drives actd-sim with LeRobot's own policy.select_action and counts the episodes it solves.

    python policy/train/evaluate.py config/policies/reach --sim build/actd-sim --episodes 100

The simulator runs in lock-step behind the same wire as for actd: joint states and JPEG frames in,
joint commands out, 25 a second of simulated time. What the simulator draws when it is driven is
never what it draws when it records, whatever the seeds. Needs LeRobot >= 0.6, pyzmq, Pillow and protoc.
"""

import argparse
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from PIL import Image

from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


def messages():
    """The message classes of proto/, made at run time so that any protobuf version will do."""
    names = ["foxglove/JointStates", "foxglove/CompressedImage", "actd/v1/joint_command",
             "actd/v1/sim_status"]
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run(["protoc", f"-I{ROOT}/proto", "-I/usr/include", "--include_imports",
                        f"--descriptor_set_out={f.name}", *[f"{n}.proto" for n in names]],
                       check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(f.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    wanted = ["foxglove.JointStates", "foxglove.CompressedImage", "actd.v1.JointCommand",
              "actd.v1.SimStatus"]
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(n)) for n in wanted]


class Robot:
    """The simulator in lock-step: observe() and command() in turns."""

    def __init__(self, sim, cameras, episodes, seed, sheet=None):
        self.States, self.Frame, self.Command, self.Status = messages()
        self.dir = tempfile.TemporaryDirectory(prefix="actd-eval-")
        args = [sim, "--lockstep", "--bind", "--runtime", self.dir.name, "--seed", str(seed),
                "--episodes", str(episodes), "--control-hz", "25", "--camera-hz", "25"]
        self.process = subprocess.Popen(args + (["--sheet", sheet] if sheet else []))
        context = zmq.Context()
        streams = ["joints.state", "sim.status"] + [f"camera.{c}" for c in cameras]
        self.socket = {s: self._open(context, zmq.SUB, s) for s in streams}
        self.out = self._open(context, zmq.PUB, "joints.command")
        self.poller = zmq.Poller()
        for s in self.socket.values():
            self.poller.register(s, zmq.POLLIN)
        self.cameras, self.status, self.seen, self.sequence = cameras, None, 0, 0

    def _open(self, context, kind, stream):
        socket = context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        if kind == zmq.SUB:
            socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(f"ipc://{self.dir.name}/{stream}")
        return socket

    def observe(self):
        """State (6,) and frames {camera: (H, W, 3)} of the next moment; None when it is over."""
        state, frames = None, {}
        while True:
            if self.status is not None and self.status.done:
                return None
            if self.process.poll() is not None:
                return None
            for socket, _ in self.poller.poll(200):
                data = socket.recv()
                if socket is self.socket["sim.status"]:
                    self.status = self.Status.FromString(data)
                elif socket is self.socket["joints.state"]:
                    state = self.States.FromString(data)
                else:
                    camera = next(c for c in self.cameras if socket is self.socket[f"camera.{c}"])
                    frames[camera] = self.Frame.FromString(data)
            got = [state] + [frames.get(c) for c in self.cameras]
            if any(g is None for g in got):
                continue
            stamps = {g.timestamp.seconds * 10**9 + g.timestamp.nanos for g in got}
            if len(stamps) == 1 and max(stamps) > self.seen:
                if not self.seen:
                    time.sleep(0.3)  # let the simulator's subscription reach us
                self.seen = max(stamps)
                break
        by_name = {j.name: j.position for j in state.joints}
        pictures = {c: np.asarray(Image.open(io.BytesIO(f.data))) for c, f in frames.items()}
        return np.array([by_name[n] for n in JOINTS], np.float32), pictures

    def command(self, target):
        self.sequence += 1
        message = self.Command(sequence=self.sequence, time_to_live_ns=200_000_000)
        for name, value in zip(JOINTS, target):
            message.joints.add(name=name, position=float(value))
        self.out.send(message.SerializeToString())


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("checkpoint")
    p.add_argument("--sim", default=str(ROOT / "build/actd-sim"))
    p.add_argument("--episodes", type=int, default=100)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--sheet", help="PNG of the first episode")
    p.add_argument("--json", help="write the result there too")
    args = p.parse_args()

    torch.set_num_threads(1)
    policy = ACTPolicy.from_pretrained(args.checkpoint)
    policy.eval()
    pre, post = make_pre_post_processors(policy.config, pretrained_path=args.checkpoint)
    cameras = [k.removeprefix("observation.images.") for k in policy.config.image_features]
    robot = Robot(args.sim, cameras, args.episodes, args.seed, args.sheet)
    steps = 0
    while (now := robot.observe()) is not None:
        state, pictures = now
        batch = {"observation.state": torch.from_numpy(state)}
        for c, picture in pictures.items():
            image = torch.from_numpy(picture.copy()).permute(2, 0, 1).float() / 255
            batch[f"observation.images.{c}"] = image
        robot.command(post(policy.select_action(pre(batch))).squeeze(0).numpy())
        steps += 1
    robot.process.wait()
    s = robot.status
    final = np.array(s.final_distance_m) * 1000
    done = s.succeeded + s.failed
    result = {"episodes": done, "succeeded": s.succeeded,
              "final_distance_median_mm": round(float(np.median(final)), 2),
              "final_distance_95_mm": round(float(np.quantile(final, 0.95)), 2),
              "seconds_per_episode": round(s.sim_time_s / max(1, done), 2), "seed": args.seed}
    print(json.dumps(result))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result) + "\n")
    return 0 if s.succeeded >= 0.95 * args.episodes else 1


if __name__ == "__main__":
    sys.exit(main())
