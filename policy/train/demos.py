"""Reads the demonstrations that `actd-sim --record` writes (format: daemon/sim/record.h)."""

import pathlib

import numpy as np

JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


def read_episode(path):
    """One file as (goal (3,), state (T, J), action (T, J), {camera: frames (T, H, W, 3)})."""
    raw = pathlib.Path(path).read_bytes()
    if raw[:8] != b"ACTDEP02":
        raise ValueError(f"{path}: not a recording of actd-sim")
    steps, joints, cameras, _rate_hz = (int(v) for v in np.frombuffer(raw, "<u4", 4, 8))
    at = 24
    sizes = []
    for _ in range(cameras):
        name = raw[at : at + 16].rstrip(b"\0").decode()
        width, height = (int(v) for v in np.frombuffer(raw, "<u4", 2, at + 16))
        sizes.append((name, height, width))
        at += 24

    def take(dtype, *shape):
        nonlocal at
        array = np.frombuffer(raw, dtype, int(np.prod(shape)), at).reshape(shape)
        at += array.nbytes
        return array

    goal = take("<f4", 3)
    state = take("<f4", steps, joints)
    action = take("<f4", steps, joints)
    frames = {name: take("u1", steps, h, w, 3) for name, h, w in sizes}
    if at != len(raw):
        raise ValueError(f"{path}: {len(raw) - at} bytes too many")
    return goal, state, action, frames


class Demos:
    """All episodes of a directory end to end in memory; about 40 kB per step."""

    def __init__(self, directory, chunk, cameras=("front", "wrist")):
        files = sorted(pathlib.Path(directory).glob("*.ep"))
        if not files:
            raise SystemExit(f"no *.ep in {directory}: record some with actd-sim --record")
        episodes = [read_episode(f) for f in files]
        self.episodes = len(episodes)
        self.goal = np.concatenate([np.repeat(e[0][None], len(e[1]), 0) for e in episodes])
        self.state = np.concatenate([e[1] for e in episodes])
        self.frames = {c: np.concatenate([e[3][c] for e in episodes]) for c in cameras}
        self.actions = np.concatenate([self._chunks(e[2], chunk) for e in episodes])

    def __len__(self):
        return len(self.state)

    @staticmethod
    def _chunks(action, chunk):
        """(T, J) -> (T, chunk, J). Past its end an episode stands still, as the expert does."""
        rows = np.arange(len(action))[:, None] + np.arange(chunk)[None]
        return action[np.minimum(rows, len(action) - 1)]

    def stats(self):
        """Mean and deviation as LeRobot's normaliser wants them; images in 0..1, per channel."""
        out = {
            "observation.state": {"mean": self.state.mean(0), "std": self.state.std(0)},
            "action": {"mean": self.actions[:, 0].mean(0), "std": self.actions[:, 0].std(0)},
        }
        for name, frames in self.frames.items():
            some = frames[:: max(1, len(frames) // 2000)].astype(np.float32) / 255
            out[f"observation.images.{name}"] = {
                "mean": some.mean((0, 1, 2)).reshape(3, 1, 1),
                "std": some.std((0, 1, 2)).reshape(3, 1, 1),
            }
        return out


def tip(q):
    """Forward kinematics of daemon/sim/arm.c: (..., 6) rad -> (..., 3) m."""
    pan, lift, elbow, wrist = (q[..., i] for i in range(4))
    le = lift + elbow
    lew = le + wrist
    r = 0.02 + 0.165 * np.sin(lift) + 0.165 * np.cos(le) + 0.11 * np.cos(lew)
    z = 0.115 + 0.165 * np.cos(lift) - 0.165 * np.sin(le) - 0.11 * np.sin(lew)
    return np.stack([r * np.cos(pan), r * np.sin(pan), z], -1)
