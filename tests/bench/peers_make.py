"""What every engine of tests/bench/peers.py needs of one case, made once and kept.

python peers_make.py WHERE CASE     a LeRobot ACT policy with grown weights (tests/parity), what it
                                    answers, its inputs, and its exports

    config.json, model.safetensors, …   as LeRobot's save_pretrained wrote them
    image0.rgb …, state.f32             the observation as a robot hands it over (bench_serve)
    peers.npz                           the same normalised: what the peers get; and `want`,
                                        LeRobot's own normalised actions
    legacy.onnx                         torch.onnx.export by tracing, opset 17
    dynamo.onnx                         torch.onnx.export as it is by default today
"""

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 20261130
OPSET = 17  # the first with LayerNormalization, which engines fuse

SMALL = dict(dim_model=256, dim_feedforward=1024, chunk_size=50, n_action_steps=50)
# name: (what it is, cameras, height, width, changes to LeRobot's defaults, GMAC of an inference)
CASES = {
    "a": ("1 camera 480x640", 1, 480, 640, {}, 17.466),
    "b": ("2 cameras 480x640", 2, 480, 640, {}, 35.137),
    "c": ("4 cameras 480x640", 4, 480, 640, {}, 72.692),
    "d": ("1 camera 224x224", 1, 224, 224, {}, 3.247),
    "e": ("96x96, dim 256, ff 1024, chunk 50", 1, 96, 96, SMALL, 0.418),
}


def forward(model, state, images):
    """LeRobot's forward at inference, its own modules in its own order, but tokens are joined by
    cat: there it is a list of up to 1200 tensors and a stack, which no engine runs faster and
    PyTorch's exporter and compiler take minutes over. Every engine gets this kinder form, and
    every answer is compared with what LeRobot's own forward says.
    """
    import torch

    config = model.config
    latent = model.encoder_latent_input_proj(torch.zeros(1, config.latent_dim))
    tokens = [latent.unsqueeze(0), model.encoder_robot_state_input_proj(state).unsqueeze(0)]
    places = [model.encoder_1d_feature_pos_embed.weight.unsqueeze(1)]
    for image in images:
        features = model.backbone(image)["feature_map"]
        place = model.encoder_cam_feat_pos_embed(features)
        features = model.encoder_img_feat_input_proj(features)
        tokens.append(features.flatten(2).permute(2, 0, 1))
        places.append(place.flatten(2).permute(2, 0, 1))
    place = torch.cat(places)
    memory = model.encoder(torch.cat(tokens), pos_embed=place)
    out = model.decoder(
        torch.zeros(config.chunk_size, 1, config.dim_model),
        memory,
        encoder_pos_embed=place,
        decoder_pos_embed=model.decoder_pos_embed.weight.unsqueeze(1),
    )
    return model.action_head(out.transpose(0, 1))


def network(where):
    """The policy's network as a module of plain tensors, loaded by LeRobot's own loader."""
    import torch
    from lerobot.policies.act.modeling_act import ACTPolicy

    class Network(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, state, *images):
            return forward(self.model, state, images)

    policy = ACTPolicy.from_pretrained(where, strict=True).eval()
    for p in policy.parameters():
        p.requires_grad_(False)
    return Network(policy.model).eval()


def checkpoint(where, name):
    import numpy as np

    sys.path.insert(0, str(HERE.parent / "parity"))
    import cases
    import common
    import era_new

    _, cameras, h, w, changes, _ = CASES[name]
    case = cases.case(
        name,
        {**cases.FULL_CONFIG, **changes},
        state=14,
        action=14,
        cameras=cases.cam(*[(h, w)] * cameras),
    )
    stats = common.statistics(case, SEED)
    obs = common.observation(case, SEED, stats)
    era_new.write_checkpoint(where, case, SEED, stats)
    want, _, batch = era_new.run_checkpoint(where, case, obs)
    inputs = {"state": batch[common.STATE_KEY].numpy()}
    for i, (key, _, _) in enumerate(case["cameras"]):
        (where / f"image{i}.rgb").write_bytes(obs[key].tobytes())
        inputs[f"image{i}"] = batch[key].numpy()
    common.write_floats(where / "state.f32", [obs[common.STATE_KEY]])
    np.savez(where / "peers.npz", want=want, **inputs)


def load_inputs(where):
    """({name: array} in the network's order, LeRobot's answer)."""
    import numpy as np

    with np.load(Path(where) / "peers.npz") as z:
        return {k: z[k] for k in z.files if k != "want"}, z["want"]


def export(where):
    import torch

    inputs, _ = load_inputs(where)
    args = tuple(torch.from_numpy(a) for a in inputs.values())
    names = {"input_names": list(inputs), "output_names": ["actions"]}
    net = network(where)
    with torch.no_grad():
        torch.onnx.export(
            net, args, where / "legacy.onnx", dynamo=False, opset_version=OPSET, **names
        )
        torch.onnx.export(net, args, where / "dynamo.onnx", dynamo=True, **names)


def main():
    import torch

    where, name = Path(sys.argv[1]), sys.argv[2]
    torch.manual_seed(SEED)
    where.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    checkpoint(where, name)
    export(where)
    print(f"peers: case {name} made in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
