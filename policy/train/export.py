#!/usr/bin/env python3
"""Turns a training checkpoint into the directory that ships: weights rounded to BF16.

    python policy/train/export.py runs/reach/checkpoint config/policies/reach

What is rounded is what was scored: evaluate.py runs on the result. LeRobot loads it as it is (it
copies the values into its float32 modules). vae_* tensors, which inference never reads, are left
out. The sidecar policy.yaml tells actd what the checkpoint itself does not say.
"""

import argparse
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file

SIDECAR = """\
# What a LeRobot checkpoint does not say about itself. Written by policy/train/export.py.
rate_hz: 25
units: rad
state_names: [{names}]
action_names: [{names}]
cameras: [{cameras}]
"""


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("checkpoint", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    weights = load_file(args.checkpoint / "model.safetensors")
    kept = {k: v.to(torch.bfloat16).contiguous() for k, v in weights.items() if "vae_" not in k}
    save_file(kept, args.out / "model.safetensors", metadata={"format": "pt"})
    for f in args.checkpoint.iterdir():
        if f.name.startswith(("config.json", "policy_")):
            shutil.copyfile(f, args.out / f.name)

    config = json.loads((args.out / "config.json").read_text())
    cameras = [k for k in config["input_features"] if k.startswith("observation.images.")]
    joints = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
    names = ", ".join(f"{j}.pos" for j in joints)
    (args.out / "policy.yaml").write_text(SIDECAR.format(names=names, cameras=", ".join(cameras)))
    for f in args.out.iterdir():
        f.chmod(0o644)  # safetensors writes 0600
    size = (args.out / "model.safetensors").stat().st_size
    print(f"{len(kept)} tensors, {size / 1e6:.1f} MB, {len(weights) - len(kept)} left out")
    return 0 if size <= 30e6 else 1


if __name__ == "__main__":
    sys.exit(main())
