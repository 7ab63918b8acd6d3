"""Files: disks that do not take the black box, weights, configurations."""
import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from process_kit import BLIND_CONFIG, BLIND_DISK, BLIND_WEIGHTS, SLOW, ends, need, reason, row, running


def told(place, options, pattern):
    """The black box has a disk of its own, mounted with options; a fault comes, and it is to be written."""
    os.mkdir(place.box)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place.box],
                      capture_output=True).returncode:
        return None, "not on this machine (no tmpfs)", "-"
    try:
        with running(place) as (actd, ear):
            place.processes[0].send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            place.until_logged(pattern, 5)
            took = time.monotonic() - begin
            n = len(ear.heard)
            time.sleep(0.5)
            need(len(ear.heard) - n > 10, "the loop fell silent")
            need(not glob.glob(f"{place.box}/*.part"), "a part of a file is left")
            place.processes[0].send_signal(signal.SIGCONT)
            m = ear.last()
    finally:
        for p in place.processes[1:]:
            p.kill()
            p.wait()
        subprocess.run(["umount", place.box], check=True)
    return took, "STOPPED, told", reason(m)


@row("black box on a full disk", "told; the loop goes on", [BLIND_DISK], r"never in actd.log: .*space")
def disk_full(place):
    return told(place, "size=8k", r"black box: .*[Nn]o space")


@row("black box on a read-only disk", "told; the loop goes on", [BLIND_DISK], r"never in actd.log: .*ead-only")
def disk_read_only(place):
    return told(place, "ro", r"black box: .*[Rr]ead-only")


def spoilt(place, name, spoil):
    """A copy of the policy in which `spoil` has changed the bytes of the weights."""
    copy = os.path.join(place.dir, name)
    shutil.copytree("config/policies/reach", copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    with open(path, "wb") as f:
        f.write(spoil(data))
    return place.write_config(name + ".yaml", policy=copy)


def cut(data):
    return data[:len(data) // 2]


def not_numbers(data):
    dtype = re.search(rb'"dtype":"(\w+)"', data).group(1)
    width = 4 if dtype == b"F32" else 2
    data[-width:] = b"\xff" * width
    return data


def other_names(data):
    return data.replace(b"model.action_head", b"model.acxion_head")


def hostile(data):
    return (1 << 63).to_bytes(8, "little") + data[8:]


@row("weights cut, hostile, misnamed, not finite", "check and run: exit 78", [BLIND_WEIGHTS],
     r"^exit 0, not 78$|^nan: it does not say")
def weights(place):
    most = 0.0
    for name, spoil in (("nan", not_numbers), ("cut", cut), ("names", other_names), ("hostile", hostile)):
        config = spoilt(place, name, spoil)
        for command in ("check", "run"):
            a = place.start(f"{place.build}/actd", command, "-c", config, log="actd.log")
            most = max(most, ends(a, 10, 78))
            need("model.safetensors" in place.log() or "action_head" in place.log() or
                 "tensor" in place.log(), f"{name}: it does not say: {place.log()[-160:]!r}")
    return most, "8 times exit 78", "-"


@row("every mistake in a configuration", "exit 78 with line and column", [BLIND_CONFIG],
     r"\.yaml: (exit 0|not where)")
def configs(place):
    n, begin = 0, time.monotonic()
    for path in sorted(glob.glob("tests/data/config/*.yaml")):
        if os.path.basename(path).startswith("policy_"):
            continue
        mine = os.path.join(place.dir, os.path.basename(path))
        shutil.copy(path, mine)
        os.chmod(mine, 0o600)
        a = subprocess.run([f"{place.build}/actd", "check", "-c", mine], capture_output=True,
                           text=True, env={**os.environ, **place.environment}, timeout=20 * SLOW)
        with open(path, errors="replace") as f:
            where = f.readline().split()[2]
        need(a.returncode == 78, f"{os.path.basename(path)}: exit {a.returncode}")
        need(f"{os.path.basename(path)}:{where}" in a.stderr + a.stdout,
             f"{os.path.basename(path)}: not where: {a.stderr[:100]!r}")
        n += 1
    return (time.monotonic() - begin) / n, f"{n} times exit 78", "-"
