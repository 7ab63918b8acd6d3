"""What both eras share: features, inputs, weights of a case, and how a case is written down.

Imports numpy and torch but nothing of LeRobot, so that it runs beside any version of it.
"""

import json
from pathlib import Path

import numpy as np
import torch

import gen

ENV_KEY = "observation.environment_state"
STATE_KEY = "observation.state"


def features(case):
    """Input features in the order of config.json: {key: (type, shape)}."""
    f = {key: ("VISUAL", (3, h, w)) for key, h, w in case["cameras"]}
    f[STATE_KEY] = ("STATE", (case["state"],))
    if case["env"]:
        f[ENV_KEY] = ("ENV", (case["env"],))
    return f


def action_feature(case):
    return {"action": ("ACTION", (case["action"],))}


def statistics(case, seed):
    """{feature: {statistic: float32 array}}, for inputs and action."""
    every = {**features(case), **action_feature(case)}
    stats = {key: gen.statistics(seed, key, shape) for key, (_, shape) in every.items()}
    for key in (STATE_KEY, "action"):
        for what in set(stats[key]) - {"count"}:
            if case["constant"]:
                stats[key][what][1] = 0.0 if what == "std" else stats[key]["mean"][1]
            if case["narrow"]:
                stats[key][what][1] *= np.float32(2.0**-25)
    return stats


def vector_input(case, seed, stats, key, n):
    """About as far from the mean as data would be; exactly on it where std is 0."""
    return stats[key]["mean"] + stats[key]["std"] * gen.floats(seed, "input/" + key, (n,), 1.7)


def observation(case, seed, stats):
    """What a robot would hand over: uint8 frames (H, W, 3) and float32 vectors."""
    obs = {key: gen.image(seed, key, h, w) for key, h, w in case["cameras"]}
    obs[STATE_KEY] = vector_input(case, seed, stats, STATE_KEY, case["state"])
    if case["env"]:
        obs[ENV_KEY] = vector_input(case, seed, stats, ENV_KEY, case["env"])
    return obs


def grow_weights(policy, case, seed):
    """Fills the policy's own tensors; returns [(name, shape, scale, offset)].

    Of tensors that share memory only the first is grown: that is the one save_model keeps.
    """
    bottleneck = case["config"]["vision_backbone"] not in ("resnet18", "resnet34")
    table, seen = [], set()
    with torch.no_grad():
        for name, tensor in policy.state_dict().items():
            if not name.startswith("model.") or tensor.data_ptr() in seen:
                continue
            seen.add(tensor.data_ptr())
            shape = list(tensor.shape)
            scale, offset = gen.scale_of(name, shape, bottleneck)
            tensor.copy_(torch.from_numpy(gen.floats(seed, name, shape, scale, offset)))
            table.append((name, shape, scale, offset))
    return table


def number_list(values):
    """float32 values as decimals that read back to the same bits."""
    return [float(v) for v in np.asarray(values, dtype=np.float32).ravel()]


def case_record(name, case, seed, obs, stats, versions):
    """The part of case.json that every era writes alike."""
    span = stats["action"]["max"].astype(np.float64) - stats["action"]["min"]
    span = np.where(span == 0, 1.0, span)
    record = {
        "name": name,
        "about": case["about"],
        "made_with": versions,
        "seed": seed,
        "images": [{"key": k, "height": h, "width": w} for k, h, w in case["cameras"]],
        "state": number_list(obs[STATE_KEY]),
    }
    if case["env"]:
        record["env"] = number_list(obs[ENV_KEY])
    record["rows"] = case["config"]["chunk_size"]
    record["action_range"] = number_list(span)
    return record


def dump_case(path, record, tensors=None):
    """case.json, readable: one key to a line, and one tensor to a line."""
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in record.items()]
    if tensors:
        rows = ",\n".join("  " + json.dumps(t) for t in tensors)
        lines.append(' "tensors": [\n' + rows + "\n ]")
    Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def write_floats(path, arrays):
    """Little-endian float32, one array after the other."""
    data = [np.asarray(a, dtype="<f4").ravel() for a in arrays]
    Path(path).write_bytes(np.concatenate(data).tobytes())
