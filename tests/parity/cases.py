"""The golden cases: which configurations are compared, and what each one is for.

A case is a dictionary laid over DEFAULT. `cameras` is a list of (key, height, width) in the
order of config.json; `norm` is LeRobot's normalization_mapping. Backbones have their true
widths (LeRobot cannot narrow them), everything else is small to keep `make test` fast.
"""

import zlib

MS = {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MEAN_STD"}


def every(mode):
    return {"VISUAL": mode, "STATE": mode, "ACTION": mode}


DEFAULT = dict(
    cameras=[("observation.images.top", 64, 64)],
    state=6,
    env=0,
    action=6,
    norm=MS,
    config=dict(
        vision_backbone="resnet18",
        dim_model=64,
        n_heads=4,
        dim_feedforward=96,
        n_encoder_layers=2,
        n_decoder_layers=1,
        chunk_size=12,
        n_action_steps=12,
        use_vae=False,
        latent_dim=8,
        n_vae_encoder_layers=1,
    ),
    constant=False,  # dimension 1 of state and action never moves: std 0, min == max
    narrow=False,  # dimension 1 of state and action moves within 1e-7: eps matters there
    planes=False,  # keep the preprocessed images too
)


def case(about, config=None, **kw):
    c = {**DEFAULT, "about": about, **kw}
    c["config"] = {**DEFAULT["config"], **(config or {})}
    return c


def cam(*sizes, prefix="observation.images.cam"):
    return [(f"{prefix}{i}", h, w) for i, (h, w) in enumerate(sizes)]


# Written and computed by the current LeRobot.
NEW = {
    "r18_base": case("LeRobot's defaults, small", dict(use_vae=True), planes=True),
    "r18_two_cameras": case(
        "two cameras of different odd sizes, names with '_', four encoder layers, eight heads",
        dict(n_encoder_layers=4, n_heads=8, latent_dim=32),
        cameras=[
            ("observation.images.wrist_right", 97, 131),
            ("observation.images.top", 64, 96),
        ],
        state=14,
        action=14,
    ),
    "r18_pre_norm": case(
        "pre-norm, gelu, two decoder layers, with VAE tensors",
        dict(pre_norm=True, feedforward_activation="gelu", n_decoder_layers=2, use_vae=True),
    ),
    "r18_pre_norm_deep": case(
        "pre-norm, relu, three encoder and three decoder layers, one head",
        dict(pre_norm=True, n_encoder_layers=3, n_decoder_layers=3, n_heads=1),
    ),
    "r18_decoder3": case(
        "post-norm, gelu, one encoder layer, three decoder layers",
        dict(n_encoder_layers=1, n_decoder_layers=3, feedforward_activation="gelu"),
    ),
    "r18_env": case("environment state, not normalised by default", env=5),
    "r18_env_min_max": case(
        "environment state under MIN_MAX, sizes of every feature different",
        norm={**MS, "ENV": "MIN_MAX"},
        env=3,
        state=7,
        action=2,
    ),
    "r18_min_max": case("MIN_MAX everywhere", norm=every("MIN_MAX"), planes=True),
    "r18_quantiles": case("QUANTILES everywhere", norm=every("QUANTILES"), planes=True),
    "r18_quantile10": case("QUANTILE10 everywhere", norm=every("QUANTILE10")),
    "r18_identity": case("IDENTITY everywhere", norm=every("IDENTITY"), planes=True),
    "r18_mixed_modes": case(
        "another mode per feature type, three cameras",
        norm={"VISUAL": "IDENTITY", "STATE": "QUANTILES", "ACTION": "MIN_MAX"},
        cameras=cam((64, 64), (48, 80), (33, 65)),
    ),
    "r18_constant_min_max": case(
        "MIN_MAX with min == max in one dimension: the range becomes eps",
        norm=every("MIN_MAX"),
        constant=True,
    ),
    "r18_narrow_min_max": case(
        "MIN_MAX with one range of about 1e-7", norm=every("MIN_MAX"), narrow=True
    ),
    "r18_constant_mean_std": case("MEAN_STD with std 0 in one dimension", constant=True),
    "r18_four_cameras": case(
        "four cameras, two sizes",
        cameras=cam((64, 64), (64, 64), (40, 72), (40, 72)),
    ),
    "r18_one_row": case(
        "chunk of one row, the older single-camera key, wide feed-forward",
        dict(chunk_size=1, n_action_steps=1, dim_feedforward=512),
        cameras=[("observation.image", 96, 96)],
        state=2,
        action=2,
    ),
    "r18_long_chunk": case(
        "chunk of 100 with temporal ensembling configured",
        dict(chunk_size=100, n_action_steps=1, temporal_ensemble_coeff=0.01, n_heads=2),
    ),
    "r18_tiny_image": case(
        "an image of one token, and a wide one",
        cameras=[("observation.images.dot", 32, 32), ("observation.images.strip", 32, 200)],
    ),
    "r34_odd": case(
        "ResNet-34, gelu, odd image size",
        dict(vision_backbone="resnet34", feedforward_activation="gelu"),
        cameras=[("observation.images.front", 97, 131)],
    ),
    "r34_pre_norm": case(
        "ResNet-34, pre-norm, environment state",
        dict(vision_backbone="resnet34", pre_norm=True),
        env=4,
    ),
    "r50": case("ResNet-50", dict(vision_backbone="resnet50", n_heads=8)),
    "r50_dilation": case(
        "ResNet-50 with the last stride replaced by dilation, odd size",
        dict(vision_backbone="resnet50", replace_final_stride_with_dilation=True),
        cameras=[("observation.images.front", 49, 67)],
    ),
    "r50_dilation_two": case(
        "the same, pre-norm, two cameras, two decoder layers, QUANTILES",
        dict(
            vision_backbone="resnet50",
            replace_final_stride_with_dilation=True,
            pre_norm=True,
            n_decoder_layers=2,
        ),
        cameras=cam((32, 48), (48, 32)),
        norm=every("QUANTILES"),
    ),
}

# Cases kept whole, weights included, byte for byte as LeRobot's save_pretrained wrote them.
WHOLE = ("env_only", "v03_env_only")
NEW["env_only"] = case(
    "no camera: environment state and robot state",
    dict(
        dim_model=16,
        n_heads=2,
        dim_feedforward=32,
        n_encoder_layers=1,
        chunk_size=8,
        n_action_steps=8,
        use_vae=True,
        latent_dim=4,
    ),
    cameras=[],
    env=4,
    state=3,
    action=3,
    norm={**MS, "ENV": "MEAN_STD"},
)

# The same network stored otherwise. `of` names the case that gives everything else.
STORED = {
    "r18_orig_mod": dict(
        of="r18_base", about="names as torch.compile leaves them", rename=True
    ),
    "r18_alias": dict(
        of="r18_base",
        about="two tied norms: one stored, the other an alias in __metadata__",
        tie=("model.encoder.layers.0.norm1", "model.encoder.layers.0.norm2"),
    ),
    "r18_f16": dict(of="r18_base", about="weights stored as F16", dtype="F16"),
    "r18_bf16": dict(of="r18_base", about="weights stored as BF16", dtype="BF16"),
}

# Written and computed by LeRobot 0.3.x, which kept statistics inside the weights. `of` gives
# architecture and seed; with MEAN_STD the result must equal that case's to the bit.
OLD = {
    "v03_mean_std": dict(of="r18_base", about="0.3: statistics inside the weights"),
    "v03_two_cameras": dict(of="r18_two_cameras", about="0.3: camera names with '_'"),
    "v03_min_max": dict(
        of="r18_min_max", about="0.3: MIN_MAX adds eps to every range", differs=True
    ),
    "v03_narrow_min_max": dict(
        of="r18_narrow_min_max", about="0.3: MIN_MAX, eps is a tenth of one range", differs=True
    ),
    "v03_identity": dict(of="r18_identity", about="0.3: IDENTITY, so no statistics at all"),
    "v03_constant_min_max": dict(
        of="r18_constant_min_max", about="0.3: MIN_MAX, one range is 0", differs=True
    ),
    "v03_env": dict(
        of="r18_env_min_max", about="0.3: environment state, MIN_MAX", differs=True
    ),
    "v01_mean_std": dict(of="r18_base", about="the config of the 0.1 era", dialect="0.1"),
    "v01_mixed": dict(
        of="r18_env_min_max",
        about="the config of the 0.1 era, modes by feature",
        dialect="0.1",
        differs=True,
    ),
    "v03_env_only": dict(of="env_only", about="0.3: no camera, the real file"),
}

# Default-size models, compared by `make parity` only.
FULL_CONFIG = dict(
    dim_model=512,
    n_heads=8,
    dim_feedforward=3200,
    n_encoder_layers=4,
    n_decoder_layers=1,
    chunk_size=100,
    n_action_steps=100,
    use_vae=True,
    latent_dim=32,
    n_vae_encoder_layers=4,
)
FULL = {
    "full_480x640_1cam": case(
        "default size, one camera", FULL_CONFIG, state=14, action=14, cameras=cam((480, 640))
    ),
    "full_480x640_2cam": case(
        "default size, two cameras",
        FULL_CONFIG,
        state=14,
        action=14,
        cameras=cam((480, 640), (480, 640)),
    ),
    "full_224x224_1cam": case("default size, one camera", FULL_CONFIG, cameras=cam((224, 224))),
}

# Whole checkpoints that carry what LeRobot answered: two cameras, ResNet-50 with dilation, and
# each way an environment state comes.
CARRIED = ("r18_two_cameras", "r18_env", "r50_dilation", "env_only")


def resolve(name):
    """(case, seed): cases made from another one share its seed, and so its weights and inputs."""
    for table in (STORED, OLD):
        if name in table:
            base, seed = resolve(table[name]["of"])
            return {**base, **table[name]}, seed
    return {**NEW, **FULL}[name], zlib.crc32(name.encode())
