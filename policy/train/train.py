#!/usr/bin/env python3
"""Trains the shipped `reach` policy: a small ACT, with LeRobot's own class and file formats.

    python policy/train/train.py --data demos/train --val demos/val --out runs/reach --minutes 65

The schedule is made for the time given: the step time is measured first, then the number of steps
is chosen so that the cosine decay ends in time. The checkpoint is written again and again while
it trains; log.csv keeps the loss. Needs LeRobot >= 0.6 and a torch for the CPU.
"""

import argparse
import csv
import math
import pathlib
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torchvision.ops.misc import FrozenBatchNorm2d

from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import demos  # noqa: E402


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True, help="directory of *.ep to learn from")
    p.add_argument("--val", required=True, help="directory of *.ep held out")
    p.add_argument("--out", required=True, help="directory for checkpoint and log")
    p.add_argument("--minutes", type=float, default=65, help="wall time of the whole schedule")
    p.add_argument("--steps", type=int, default=0, help="fixed number of steps instead")
    p.add_argument("--cameras", default="front,wrist")
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--chunk", type=int, default=24)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--init", help="checkpoint to start from instead of random weights")
    p.add_argument("--clip", type=float, default=1.0, help="largest norm of a gradient")
    p.add_argument("--bf16", action="store_true", help="convolutions and products in bfloat16")
    return p.parse_args()


def make_config(args, data):
    features = {"observation.state": PolicyFeature(FeatureType.STATE, (data.state.shape[1],))}
    for name, frames in data.frames.items():
        shape = (3, *frames.shape[1:3])
        features[f"observation.images.{name}"] = PolicyFeature(FeatureType.VISUAL, shape)
    return ACTConfig(
        input_features=features,
        output_features={"action": PolicyFeature(FeatureType.ACTION, (data.state.shape[1],))},
        normalization_mapping={
            "VISUAL": NormalizationMode.MEAN_STD,
            "STATE": NormalizationMode.MEAN_STD,
            "ACTION": NormalizationMode.MEAN_STD,
        },
        chunk_size=args.chunk,
        n_action_steps=8,
        pretrained_backbone_weights=None,
        dim_model=128,
        n_heads=4,
        dim_feedforward=512,
        n_encoder_layers=2,
        n_decoder_layers=1,
        use_vae=False,
        dropout=0.0,
        optimizer_lr=args.lr,
        optimizer_lr_backbone=args.lr,
        device="cpu",
        push_to_hub=False,
    )


class Batches:
    """Random batches, normalised as the saved preprocessor will, lightly disturbed in colour."""

    def __init__(self, data, stats, batch, seed):
        self.data, self.batch = data, batch
        self.rng = np.random.default_rng(seed)
        self.order = np.empty(0, int)
        self.stats = {
            k: {m: torch.from_numpy(np.asarray(v, np.float32)) for m, v in s.items()}
            for k, s in stats.items()
        }

    def next_indices(self):
        if len(self.order) < self.batch:
            self.order = self.rng.permutation(len(self.data))
        take, self.order = self.order[: self.batch], self.order[self.batch :]
        return np.sort(take)

    def normal(self, key, x):
        return (x - self.stats[key]["mean"]) / (self.stats[key]["std"] + 1e-8)

    def get(self, index, disturb):
        state = torch.from_numpy(self.data.state[index])
        action = torch.from_numpy(self.data.actions[index])
        out = {
            "observation.state": self.normal("observation.state", state),
            "action": self.normal("action", action),
            "action_is_pad": torch.zeros(action.shape[:2], dtype=torch.bool),
        }
        for name, frames in self.data.frames.items():
            x = torch.from_numpy(frames[index]).permute(0, 3, 1, 2).float() / 255
            if disturb:
                gain = 1 + 0.08 * torch.randn(len(x), 3, 1, 1) * 0.5 + 0.06 * torch.randn(len(x), 1, 1, 1)
                x = x * gain + 0.02 * torch.randn(len(x), 1, 1, 1)
                x = (x + 0.01 * torch.randn_like(x)).clamp_(0, 1)
            key = f"observation.images.{name}"
            out[key] = self.normal(key, x).contiguous(memory_format=torch.channels_last)
        return out


@torch.no_grad()
def calibrate(policy, batch):
    """Sets the frozen batch norms from one batch, layer by layer.

    LeRobot freezes them since it expects a pretrained backbone. From random weights they would
    stay the identity, and activations would grow sixteenfold over ResNet-18's eight blocks.
    """
    def hook(module, inputs):
        x = inputs[0]
        module.running_mean.copy_(x.mean((0, 2, 3)))
        module.running_var.copy_(x.var((0, 2, 3)) + 1e-3)

    norms = [m for m in policy.modules() if isinstance(m, FrozenBatchNorm2d)]
    handles = [m.register_forward_pre_hook(hook) for m in norms]
    policy.eval()
    policy.predict_action_chunk(batch)
    for h in handles:
        h.remove()


@torch.no_grad()
def validate(policy, batches, stats, indices):
    """Mean error in rad, and median/95 % distance of the tip to the goal 1 s ahead at the end."""
    policy.eval()
    mean, std = (np.asarray(stats["action"][k]) for k in ("mean", "std"))
    error, far = [], []
    for part in np.array_split(indices, max(1, len(indices) // 64)):
        batch = batches.get(part, False)
        rows = policy.predict_action_chunk(batch).float().numpy() * std + mean
        label = batches.data.actions[part]
        error.append(np.abs(rows - label).mean((1, 2)))
        far.append(np.linalg.norm(demos.tip(rows[:, -1]) - demos.tip(label[:, -1]), axis=-1))
    policy.train()
    far = np.concatenate(far) * 1000
    return float(np.concatenate(error).mean()), float(np.median(far)), float(np.quantile(far, 0.95))


def save(policy, pre, post, out):
    out.mkdir(parents=True, exist_ok=True)
    policy.save_pretrained(out)
    pre.save_pretrained(out)
    post.save_pretrained(out)


def learning_rate(step, steps, peak, warmup=200):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1, done))))


class Average:
    """Exponential average of the weights: what is validated and saved, free of the last steps' noise."""

    def __init__(self, policy):
        self.policy, self.steps = policy, 0
        self.copy = [w.detach().clone() for w in policy.parameters()]

    @torch.no_grad()
    def update(self):
        self.steps += 1
        keep = min(0.997, (1 + self.steps) / (10 + self.steps))
        for a, w in zip(self.copy, self.policy.parameters()):
            a.lerp_(w, 1 - keep)

    def __enter__(self):
        self.raw = [w.detach().clone() for w in self.policy.parameters()]
        self.put(self.copy)

    def __exit__(self, *_):
        self.put(self.raw)

    @torch.no_grad()
    def put(self, values):
        for w, v in zip(self.policy.parameters(), values):
            w.copy_(v)


def train_step(policy, optimizer, batch, bf16, clip):
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        loss, _ = policy.forward(batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), clip)
    optimizer.step()
    return float(loss.detach())


def main():
    args = arguments()
    began = time.monotonic()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    cameras = args.cameras.split(",")
    data = demos.Demos(args.data, args.chunk, cameras)
    held = demos.Demos(args.val, args.chunk, cameras)
    stats = data.stats()
    print(f"{data.episodes} episodes, {len(data)} steps; {held.episodes} held out", flush=True)

    config = make_config(args, data)
    policy = ACTPolicy(config).to(memory_format=torch.channels_last)
    tensors = {k: {m: torch.as_tensor(np.asarray(v, np.float32)) for m, v in s.items()}
               for k, s in stats.items()}
    pre, post = make_act_pre_post_processors(config, tensors)
    batches = Batches(data, stats, args.batch, args.seed)
    val = Batches(held, stats, args.batch, 0)
    val_index = np.linspace(0, len(held) - 1, min(384, len(held))).astype(int)
    if args.init:
        weights = load_file(pathlib.Path(args.init) / "model.safetensors")
        policy.load_state_dict(weights)
    else:
        calibrate(policy, val.get(np.arange(0, len(held), max(1, len(held) // 128)), False))
    average = Average(policy)

    optimizer = torch.optim.AdamW(policy.parameters(), lr=args.lr, weight_decay=1e-4)
    policy.train()
    log = csv.writer(open(out / "log.csv", "w", newline="", buffering=1))
    log.writerow(["step", "minutes", "lr", "loss", "val_rad", "tip_median_mm", "tip_95_mm"])
    steps = args.steps or 10**9
    losses, saved, tick, step = [], time.monotonic(), time.monotonic(), 0
    while step < steps:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, args.lr)
        batch = batches.get(batches.next_indices(), True)
        losses.append(train_step(policy, optimizer, batch, args.bf16, args.clip))
        average.update()
        step += 1
        # The time a step takes drifts with the machine's load: the number of steps that still
        # fit is estimated again and again, with a little in hand for validation.
        if not args.steps and step % 25 == 0 and step >= 50:
            per_step = (time.monotonic() - tick) / 25
            left = args.minutes * 60 - (time.monotonic() - began)
            estimate = step + max(0, int(left / per_step * 0.97))
            steps = estimate if steps > 10**8 else int(0.7 * steps + 0.3 * estimate)
        if step % 25 == 0:
            tick = time.monotonic()
        if step % 100 == 0 or step >= steps or step in (10, 30):
            with average:
                report = validate(policy, val, stats, val_index)
            row = [step, round((time.monotonic() - began) / 60, 2),
                   f"{optimizer.param_groups[0]['lr']:.2e}", f"{np.mean(losses[-100:]):.5f}",
                   f"{report[0]:.5f}", f"{report[1]:.2f}", f"{report[2]:.2f}"]
            log.writerow(row)
            print(f"of {steps}:", *row, flush=True)
            tick = time.monotonic()
        if time.monotonic() - saved > 240 or step >= steps:
            with average:
                save(policy, pre, post, out / "checkpoint")
            saved = tick = time.monotonic()
    print("done", flush=True)


if __name__ == "__main__":
    main()
