"""Golden data from LeRobot 0.3.x, which normalised inside the policy.

    python era_old.py OUT            the cases of that era into OUT/golden and OUT/checkpoints
    python era_old.py OUT NAME ...   only these

Runs in an environment of its own. The 0.1 era is the same code under another config dialect;
no package of it with ACT was ever published, so its config.json is written here by hand.
"""

import json
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy

import cases
import common

VERSIONS = {"lerobot": version("lerobot"), "torch": torch.__version__.split("+")[0]}

# What a config of the 0.1 era held beside its shapes and modes, in its alphabetical order.
FIELDS_01 = (
    "chunk_size dim_feedforward dim_model dropout feedforward_activation kl_weight latent_dim "
    "n_action_steps n_decoder_layers n_encoder_layers n_heads n_obs_steps n_vae_encoder_layers "
    "pre_norm pretrained_backbone_weights replace_final_stride_with_dilation "
    "temporal_ensemble_coeff use_vae vision_backbone"
).split()


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
        **case["config"],
    )


def config_01(case, config):
    """The same policy in the words of the 0.1 era: no type, shapes and modes by feature."""
    inputs, outputs = common.features(case), common.action_feature(case)

    def shapes(features):
        return {k: list(shape) for k, (_, shape) in features.items()}

    def modes(features):
        return {k: case["norm"][kind].lower() for k, (kind, _) in features.items()}

    fields = {k: config[k] for k in FIELDS_01}
    fields["input_shapes"], fields["output_shapes"] = shapes(inputs), shapes(outputs)
    fields["input_normalization_modes"] = modes(inputs)
    fields["output_normalization_modes"] = modes(outputs)
    return json.dumps(dict(sorted(fields.items())), indent=2)


def batch_of(obs):
    """As 0.3's predict_action prepared it: every image divided by 255, channels first."""
    batch = {}
    for key, value in obs.items():
        tensor = torch.from_numpy(value.copy())
        if "image" in key:
            tensor = (tensor.type(torch.float32) / 255).permute(2, 0, 1).contiguous()
        batch[key] = tensor.unsqueeze(0)
    return batch


def run(where, obs):
    """(normalised actions, actions) from the files on."""
    policy = ACTPolicy.from_pretrained(where, strict=True).eval()
    seen = []
    policy.model.register_forward_hook(lambda m, i, out: seen.append(out[0].clone()))
    with torch.no_grad():
        actions = policy.predict_action_chunk(batch_of(obs))
    return seen[0][0].numpy(), actions[0].numpy()


def statistics_rows(policy):
    """Statistics buffers as [name, shape, values]: they are data, not grown."""
    rows = []
    for name, tensor in policy.state_dict().items():
        if not name.startswith("model."):
            rows.append((name, list(tensor.shape), common.number_list(tensor.numpy())))
    return rows


def golden_case(out, name):
    case, seed = cases.resolve(name)
    stats = common.statistics(case, seed)
    obs = common.observation(case, seed, stats)
    whole = name in cases.WHOLE
    to = out / ("checkpoints" if whole else "golden") / name
    to.mkdir(parents=True, exist_ok=True)
    record = common.case_record(name, case, seed, obs, stats, VERSIONS)
    record["weights"] = "file" if whole else "grown"
    if not case.get("differs"):
        record["same_bits_as"] = case["of"]
    # As a dataset's stats.json gives them, in float64: float32 arrays would be shared between
    # normalize_targets and unnormalize_outputs, and save_pretrained would store them once.
    as_float64 = {k: {n: a.astype(np.float64) for n, a in s.items()} for k, s in stats.items()}
    policy = ACTPolicy(config_of(case), dataset_stats=as_float64)
    table = common.grow_weights(policy, case, seed)
    with tempfile.TemporaryDirectory() as tmp:
        where = Path(tmp)
        policy.save_pretrained(where)
        normalized, actions = run(where, obs)
        for f in ["config.json"] + (["model.safetensors"] if whole else []):
            shutil.copyfile(where / f, to / f)
    if case.get("dialect") == "0.1":
        config = json.loads((to / "config.json").read_text())
        (to / "config.json").write_text(config_01(case, config) + "\n")
    common.write_floats(to / "expected.f32", [normalized, actions])
    common.dump_case(
        to / "case.json", record, None if whole else statistics_rows(policy) + table
    )
    print(f"{name:24} |normalised| <= {np.abs(normalized).max():.2f}", flush=True)


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    torch.manual_seed(0)
    for name in cases.OLD:
        if not names or name in names:
            golden_case(out, name)


if __name__ == "__main__":
    main()
