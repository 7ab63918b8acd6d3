"""Golden data from the current LeRobot: its own ACTPolicy, processors and save_pretrained.

python era_new.py OUT            golden cases into OUT/golden and OUT/checkpoints
python era_new.py OUT full       the default-size models, weights and all, into OUT
python era_new.py OUT carried    small whole checkpoints, likewise; like the former they carry a
                                 golden.safetensors of LeRobot's own forward
python era_new.py OUT trained DEMOS     the policy that ships, whose weights were trained, before
                                 pictures of the simulator (DEMOS: actd-sim --record DEMOS)
python era_new.py OUT NAME ...   only these golden cases
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import lerobot
import numpy as np
import torch
import torch.nn.functional as F
from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from lerobot.policies.common.vla_utils import resize_with_pad
from lerobot.policies.factory import make_pre_post_processors
from lerobot.policies.utils import prepare_observation_for_inference
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

import cases
import common
import gen

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "policy" / "train"))
from demos import read_episode

CPU = torch.device("cpu")
VERSIONS = {"lerobot": lerobot.__version__, "torch": torch.__version__.split("+")[0]}
PROCESSOR_FILES = (
    "policy_preprocessor.json",
    "policy_preprocessor_step_3_normalizer_processor.safetensors",
    "policy_postprocessor.json",
    "policy_postprocessor_step_0_unnormalizer_processor.safetensors",
)


def config_of(case):
    def feature(entry):
        kind, shape = entry
        return PolicyFeature(type=FeatureType[kind], shape=tuple(shape))

    return ACTConfig(
        input_features={k: feature(v) for k, v in common.features(case).items()},
        output_features={k: feature(v) for k, v in common.action_feature(case).items()},
        normalization_mapping={k: NormalizationMode[v] for k, v in case["norm"].items()},
        pretrained_backbone_weights=None,
        device="cpu",
        push_to_hub=False,
        **case["config"],
    )


def tie(policy, pair):
    """Makes two norms share their memory, which save_pretrained then stores once."""
    a, b = (policy.get_submodule(name) for name in pair)
    b.weight, b.bias = a.weight, a.bias


def write_checkpoint(where, case, seed, stats):
    """A whole checkpoint directory as LeRobot writes it; returns the table of tensors."""
    policy = ACTPolicy(config_of(case))
    if case.get("tie"):
        tie(policy, case["tie"])
    table = common.grow_weights(policy, case, seed)
    policy.save_pretrained(where)
    as_tensors = {k: {n: torch.from_numpy(a) for n, a in s.items()} for k, s in stats.items()}
    pre, post = make_act_pre_post_processors(policy.config, as_tensors)
    pre.save_pretrained(where)
    post.save_pretrained(where)
    if case.get("dtype"):
        dtype = {"F16": torch.float16, "BF16": torch.bfloat16}[case["dtype"]]
        weights = where / "model.safetensors"
        stored = {k: v.to(dtype) for k, v in load_file(weights).items()}
        save_file(stored, weights, metadata={"format": "pt"})
    return table


def load_checkpoint(where, case):
    """LeRobot's own loader, strict. A tied policy must be tied before its weights are read."""
    if not case.get("tie"):
        return ACTPolicy.from_pretrained(where, strict=True)
    policy = ACTPolicy(config_of(case))
    tie(policy, case["tie"])
    return ACTPolicy._load_as_safetensor(policy, str(where / "model.safetensors"), "cpu", True)


def run_checkpoint(where, case, obs):
    """LeRobot from the files on: (normalised actions, actions, preprocessed batch)."""
    policy = load_checkpoint(where, case).eval()
    pre, post = make_pre_post_processors(policy.config, pretrained_path=str(where))
    with torch.no_grad():
        batch = pre(
            prepare_observation_for_inference({k: v.copy() for k, v in obs.items()}, CPU)
        )
        normalized = policy.predict_action_chunk(batch)
        actions = post(normalized.clone())
    return normalized[0].numpy(), actions[0].numpy(), batch


def describe_storage(record, case, whole):
    """How the C test must write model.safetensors so that it is this case's file."""
    record["weights"] = "file" if whole else "grown"
    if case.get("dtype"):
        record["dtype"] = case["dtype"]
    if case.get("rename"):
        record["rename"] = ["model.", "model._orig_mod."]
    if case.get("of"):
        record["of"] = case["of"]


def alias_metadata(weights, record):
    """Copies what save_pretrained noted about tensors it stored only once."""
    size = int.from_bytes(weights[:8], "little")
    meta = json.loads(weights[8 : 8 + size]).get("__metadata__", {})
    aliases = {k: meta[k] for k in sorted(meta) if k != "format"}  # written in any order
    if aliases:
        record["metadata"] = aliases
    return aliases


def write_golden(where, obs, actions):
    """What policy/golden.h describes, from LeRobot: pictures as a camera gives them."""
    parts = {key: np.ascontiguousarray(value) for key, value in obs.items()}
    save_arrays({**parts, "action": np.ascontiguousarray(actions)}, where / "golden.safetensors")


def golden_case(out, name):
    """One directory of golden data."""
    case, seed = cases.resolve(name)
    stats = common.statistics(case, seed)
    obs = common.observation(case, seed, stats)
    whole = name in cases.WHOLE
    to = out / ("checkpoints" if whole else "golden") / name
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        where = Path(tmp)
        table = write_checkpoint(where, case, seed, stats)
        normalized, actions, batch = run_checkpoint(where, case, obs)
        record = common.case_record(name, case, seed, obs, stats, VERSIONS)
        describe_storage(record, case, whole)
        aliases = alias_metadata((where / "model.safetensors").read_bytes(), record)
        assert not set(aliases) & {t[0] for t in table}, "grown under a name that was dropped"
        keep = ["config.json", *PROCESSOR_FILES]
        if whole:
            write_golden(where, obs, actions)
            keep += ["model.safetensors", "golden.safetensors"]
        for f in keep:
            shutil.copyfile(where / f, to / f)
    values = [normalized, actions]
    if case["planes"] and not case.get("of"):
        record["planes"] = True
        values += [batch[key][0].numpy() for key, _, _ in case["cameras"]]
    common.write_floats(to / "expected.f32", values)
    common.dump_case(to / "case.json", record, None if whole else table)
    print(f"{name:24} |normalised| <= {np.abs(normalized).max():.2f}", flush=True)


def tick_policy(config):
    """An ACTPolicy whose network is replaced by chunks from the generator."""
    case = {**cases.DEFAULT, "cameras": [], "env": 2}
    case["config"] = {**case["config"], **config}
    return ACTPolicy(config_of(case))


def ticks(out, name, about, config, n=300):
    """select_action for n ticks: only the chunks are ours, queue and ensembler are LeRobot's."""
    seed, joints = 77, 6
    policy = tick_policy(config)
    rows = policy.config.chunk_size
    stats = gen.statistics(seed, "action", (joints,))
    as_tensors = {"action": {k: torch.from_numpy(v) for k, v in stats.items()}}
    _, post = make_act_pre_post_processors(policy.config, as_tensors)
    inferences = 0

    def predict(batch):
        nonlocal inferences
        chunk = gen.floats(seed, f"chunk/{inferences}", (1, rows, joints))
        inferences += 1
        return torch.from_numpy(chunk)

    policy.predict_action_chunk = predict
    policy.reset()
    commands = [post(policy.select_action({}))[0].numpy() for _ in range(n)]
    record = {
        "name": name,
        "about": about,
        "made_with": VERSIONS,
        "seed": seed,
        "ticks": n,
        "rows": rows,
        "joints": joints,
        "n_action_steps": policy.config.n_action_steps,
        "temporal_ensemble_coeff": policy.config.temporal_ensemble_coeff,
        "inferences": inferences,
        "mean": common.number_list(stats["mean"]),
        "std": common.number_list(stats["std"]),
    }
    to = out / "golden" / "ticks"
    to.mkdir(parents=True, exist_ok=True)
    common.dump_case(to / f"{name}.json", record)
    common.write_floats(to / f"{name}.f32", commands)
    print(f"ticks/{name:18} {inferences} inferences in {n} ticks", flush=True)


TICKS = {
    "queue_8": ("queue of 8 of 12 rows", dict(n_action_steps=8)),
    "queue_12": ("queue of a whole chunk", dict(n_action_steps=12)),
    "queue_1": ("one row of every chunk", dict(n_action_steps=1)),
    "ensemble_0.01": (
        "temporal ensembling, the paper's coefficient",
        dict(n_action_steps=1, chunk_size=20, temporal_ensemble_coeff=0.01),
    ),
    "ensemble_0": (
        "temporal ensembling, uniform weights",
        dict(n_action_steps=1, chunk_size=20, temporal_ensemble_coeff=0.0),
    ),
    "ensemble_-0.1": (
        "temporal ensembling, newer rows weigh more",
        dict(n_action_steps=1, chunk_size=20, temporal_ensemble_coeff=-0.1),
    ),
}

# (source height, width) to (height, width): down, up, one axis only, odd ratios, letterbox with
# bars on top or on the left.
RESIZES = [
    ((48, 64), (24, 32)),
    ((24, 32), (48, 64)),
    ((37, 53), (24, 32)),
    ((24, 32), (37, 53)),
    ((30, 40), (30, 20)),
    ((33, 20), (32, 32)),
    ((20, 33), (32, 32)),
    ((7, 5), (31, 29)),
    ((60, 80), (17, 19)),
]


def images(out):
    """uint8 frames through torch's and LeRobot's own resize, no normalisation: values in [0, 1]."""
    seed, entries, planes = 99, [], []
    for mode in ("stretch", "letterbox"):
        for (h0, w0), (h, w) in RESIZES:
            frame = gen.image(seed, f"{h0}x{w0}", h0, w0)
            chw = torch.from_numpy(frame).float().permute(2, 0, 1).unsqueeze(0) / 255
            if mode == "stretch":
                chw = F.interpolate(
                    chw, size=(h, w), mode="bilinear", align_corners=False, antialias=False
                )
            else:
                chw = resize_with_pad(chw, h, w, pad_value=0.0)
            assert chw.shape == (1, 3, h, w)
            entries.append({"mode": mode, "from": [h0, w0], "to": [h, w]})
            planes.append(chw.numpy())
    to = out / "golden" / "images"
    to.mkdir(parents=True, exist_ok=True)
    record = {"about": "bilinear resizing", "made_with": VERSIONS, "seed": seed}
    common.dump_case(to / "case.json", {**record, "resizes": entries})
    common.write_floats(to / "expected.f32", planes)


def whole_case(out, name):
    """A whole checkpoint with its inputs beside it, for tests/parity/infer_dir.c."""
    case, seed = cases.resolve(name)
    stats = common.statistics(case, seed)
    obs = common.observation(case, seed, stats)
    where = out / name
    where.mkdir(parents=True, exist_ok=True)
    write_checkpoint(where, case, seed, stats)
    normalized, actions, _ = run_checkpoint(where, case, obs)
    for i, (key, _, _) in enumerate(case["cameras"]):
        (where / f"image{i}.rgb").write_bytes(obs[key].tobytes())
    common.write_floats(where / "state.f32", [obs[common.STATE_KEY]])
    if case["env"]:
        common.write_floats(where / "env.f32", [obs[common.ENV_KEY]])
    common.write_floats(where / "expected.f32", [normalized, actions])
    record = common.case_record(name, case, seed, obs, stats, VERSIONS)
    common.write_floats(where / "range.f32", [record["action_range"]])
    write_golden(where, obs, actions)
    print(f"{name:24} |normalised| <= {np.abs(normalized).max():.2f}", flush=True)


def write_inputs(where, obs, keys, normalized, actions, ranges):
    """What tests/parity/infer_dir.c reads beside the checkpoint."""
    for i, key in enumerate(keys):
        (where / f"image{i}.rgb").write_bytes(np.ascontiguousarray(obs[key]).tobytes())
    common.write_floats(where / "state.f32", [obs[common.STATE_KEY]])
    common.write_floats(where / "expected.f32", [normalized, actions])
    common.write_floats(where / "range.f32", [ranges])
    write_golden(where, obs, actions)


def trained(out, demos, every=12):
    """Trained weights have outliers that grown ones lack, and pictures have large even areas."""
    ship = ROOT / "config" / "policies" / "reach"
    keys = [k for k in json.loads((ship / "config.json").read_text())["input_features"]
            if "images" in k]
    for episode in sorted(demos.iterdir()):
        _, state, action, frames = read_episode(episode)
        for t in range(0, len(state), every):
            where = out / f"trained_{episode.stem}_{t:03d}"
            shutil.copytree(ship, where, ignore=shutil.ignore_patterns("golden*", "*.png"))
            obs = {k: frames[k.rpartition(".")[2]][t] for k in keys}
            obs[common.STATE_KEY] = state[t]
            normalized, actions, _ = run_checkpoint(where, {}, obs)
            write_inputs(where, obs, keys, normalized, actions, np.ptp(action, axis=0) + 1e-3)


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    torch.manual_seed(0)
    if names[:1] == ["trained"]:
        trained(out, Path(names[1]))
        return
    several = {"full": cases.FULL, "carried": cases.CARRIED}
    if len(names) == 1 and names[0] in several:
        for name in several[names[0]]:
            whole_case(out, name)
        return
    for name in [*cases.NEW, *cases.STORED]:
        if not names or name in names:
            golden_case(out, name)
    if not names:
        for name, (about, config) in TICKS.items():
            ticks(out, name, about, config)
        images(out)


if __name__ == "__main__":
    main()
