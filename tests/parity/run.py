#!/usr/bin/env python3
"""make parity: actd against LeRobot itself.

    python3.12 tests/parity/run.py [--venv DIR] [--old-venv DIR --old-python PYTHON]
                                   [--build DIR] [--write] [--skip-full] [--yes]
                                   [--only-viewers] [--only-datasets]

1. builds a virtual environment with the current LeRobot (and one with 0.3.x) outside the tree,
2. regenerates every golden case with it and compares with the committed ones (--write replaces
   them),
3. runs whole checkpoints, small ones and the default-size models: LeRobot writes one, computes
   its actions and records them in its golden.safetensors, then tests/parity/infer_dir.c loads
   the same directory, and must refuse it once the record is perturbed; the policy that ships,
   whose weights were trained, likewise before pictures of its simulator,
4. runs the C golden tests, and prints one table of worst differences,
5. records the simulated arm and opens the recordings with PyPI's MCAP reader and with Rerun's loader
   (viewers.py; alone with --only-viewers, which needs none of the above).

6. lets LeRobot write data sets and converts them to MCAP (dataset.py; alone with --only-datasets).

Exits with 0 when everything is within its bound.
"""

import argparse
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = ROOT / "tests" / "data"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "actd"

NEW = {"lerobot": "lerobot==0.6.1", "python": (3, 12), "gigabytes": 2.9, "disk": 5.1}
OLD = {"lerobot": "lerobot==0.3.3", "python": (3, 10), "gigabytes": 3.4, "disk": 6.3}

VIEWERS = ["mcap==1.6.0", "mcap-protobuf-support==0.6.0", "pillow", "pyzmq", "rerun-sdk==0.41.0"]

BOUND = 2e-5  # normalised actions
BOUND_RANGE = 1e-5  # actions, of their range
BOUND_PIXEL = 1e-6  # image planes of the trained size
BOUND_RESIZED = 1e-4  # resized images, of full scale


def die(sentence):
    sys.exit("parity: " + sentence)


def run(*command, **kw):
    return subprocess.run([str(c) for c in command], check=True, **kw)


# ---- environments ---------------------------------------------------------------------------


def python_version(python):
    code = "import sys; print(*sys.version_info[:2])"
    try:
        out = run(python, "-c", code, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return tuple(int(x) for x in out.split())


def installed(python, requirement):
    """Whether that environment already has the wanted LeRobot, working."""
    name, want = requirement.split("==")
    code = (
        f"from importlib.metadata import version; assert version({name!r}) == {want!r}; "
        "from lerobot.policies.act.modeling_act import ACTPolicy"
    )
    return (
        subprocess.run(
            [str(python), "-c", code], capture_output=True, cwd=tempfile.gettempdir()
        ).returncode
        == 0
    )


def environment(where, base, what, yes):
    """The environment's python; builds it when missing, after saying what that costs."""
    python = where / "bin" / "python"
    if python.exists() and installed(python, what["lerobot"]):
        return python
    if ROOT in where.resolve().parents:
        die(f"--venv {where} lies inside the source tree; name a directory outside it.")
    print(
        f"parity: {what['lerobot']} with PyTorch will be installed into {where}:\n"
        f"        about {what['gigabytes']} GB to download, {what['disk']} GB on disk.",
        flush=True,
    )
    if not yes and sys.stdin.isatty() and input("        Go on? [y/N] ").lower() != "y":
        die("stopped before downloading anything.")
    run(base, "-m", "venv", where)
    run(python, "-m", "pip", "install", "--quiet", what["lerobot"], "safetensors", "numpy")
    if not installed(python, what["lerobot"]):
        die(f"{what['lerobot']} was installed into {where} but does not import; remove it.")
    return python


def viewers_environment(where):
    """For viewers.py: 0.2 GB, nearly all of it Rerun."""
    python, asked = where / "bin" / "python", where / "asked"
    if asked.exists() and asked.read_text().split() == VIEWERS:
        return python
    if ROOT in where.resolve().parents:
        die(f"--viewers-venv {where} lies inside the source tree; name a directory outside it.")
    print(f"parity: {', '.join(VIEWERS)} will be installed into {where}.", flush=True)
    run(sys.executable, "-m", "venv", where)
    run(python, "-m", "pip", "install", "--quiet", *VIEWERS)
    asked.write_text("\n".join(VIEWERS))
    return python


def viewers(args):
    python = viewers_environment(args.viewers_venv)
    scripts = ("mcap_theirs.py", "viewers.py")
    return max(subprocess.run([str(python), str(HERE / s), "--build", args.build]).returncode
               for s in scripts)  # fmt: skip


def check_python(base, what, option):
    version, need = python_version(base), what["python"]
    if version is None:
        die(f"{base} does not run; give {option} another interpreter.")
    if version < need:
        die(
            f"{what['lerobot']} needs Python {need[0]}.{need[1]} or newer and {base} is "
            f"{version[0]}.{version[1]}; give {option} a newer one."
        )


# ---- comparing what was regenerated with what is committed ----------------------------------


def floats(path):
    data = path.read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)


def worst(a, b):
    if len(a) != len(b):
        return math.inf
    differences = [abs(x - y) for x, y in zip(a, b)]
    return max(differences, default=0.0) if all(map(math.isfinite, differences)) else math.inf


def golden_actions(path):
    """The bytes of a golden.safetensors, and from where to where its actions are."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:start])["action"]["data_offsets"]
    return data, start + begin, start + end


def same_golden(a, b):
    """As same_file: equal but for what was computed, which is compared."""
    (x, begin, end), (y, *place) = golden_actions(a), golden_actions(b)
    if [begin, end] != place or x[:begin] + x[end:] != y[:begin] + y[end:]:
        return math.inf
    n = (end - begin) // 4
    return worst(*(struct.unpack(f"<{n}f", z[begin:end]) for z in (x, y)))


def without_versions(text):
    return "\n".join(line for line in text.splitlines() if '"made_with"' not in line)


def same_file(a, b):
    """None, or the worst difference of two floats files; inf when anything else differs."""
    if not a.exists() or not b.exists():
        return math.inf
    if a.suffix == ".f32":
        return worst(floats(a), floats(b))
    if a.name == "golden.safetensors":
        return same_golden(a, b)
    if a.name.endswith(".json"):
        same = without_versions(a.read_text()) == without_versions(b.read_text())
    else:
        same = a.read_bytes() == b.read_bytes()
    return 0.0 if same else math.inf


def compare_trees(fresh, rows):
    """One row for every directory that came out otherwise, and one for all of them."""
    cases = {
        p.parent.relative_to(base)
        for base in (fresh, DATA)
        for part in ("golden", "checkpoints")
        for p in (base / part).rglob("*")
        if p.is_file()
    }
    total = 0.0
    for case in sorted(cases):
        names = {
            p.name for base in (fresh, DATA) for p in (base / case).glob("*") if p.is_file()
        }
        diffs = {name: same_file(fresh / case / name, DATA / case / name) for name in names}
        bad = max(diffs, key=lambda k: diffs[k])
        total = max(total, diffs[bad])
        if diffs[bad] > 0:
            rows.append(("regenerated", str(case), diffs[bad], BOUND, bad))
    rows.append(("regenerated", f"all {len(cases)} directories", total, BOUND, ""))


def replace_tree(fresh):
    for part in ("golden", "checkpoints"):
        shutil.rmtree(DATA / part, ignore_errors=True)
        shutil.copytree(fresh / part, DATA / part)
    print(f"parity: golden data under {DATA} replaced.")


# ---- the C side -----------------------------------------------------------------------------


def build(build_dir):
    """Library, golden tests and infer_dir, with the Makefile's own flags."""
    tests = [f"{build_dir}/tests/test_golden{s}" for s in ("", "_images", "_ticks")]
    driver = Path(build_dir) / "infer_dir"
    run("make", "-C", ROOT, f"BUILD={build_dir}", f"{build_dir}/libpolicy.a", *tests)
    run(
        os.environ.get("CC", "cc"),
        "-std=c17",
        "-D_GNU_SOURCE",
        "-O2",
        "-Wall",
        "-Wextra",
        f"-I{ROOT}",
        "-o",
        driver,
        HERE / "infer_dir.c",
        f"{build_dir}/libpolicy.a",
        "-lopenblas",
        "-ljansson",
        "-lcrypto",
        "-lpthread",
        "-lm",
    )
    return tests, driver


def golden_tests(tests, rows):
    """The C tests; the differences they print, `  WORD NUMBER ...`, become rows of the table."""
    bounds = {
        "normalised": BOUND,
        "of-range": BOUND_RANGE,
        "planes": BOUND_PIXEL,
        "resized": BOUND_RESIZED,
        "commands": BOUND_RANGE,
        "golden": BOUND,
    }
    environ = {**os.environ, "CMOCKA_MESSAGE_OUTPUT": "STDOUT"}
    for test in tests:
        p = subprocess.run(
            [test], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
        )
        case = ""
        for line in (p.stdout + "\n" + p.stderr).splitlines():
            words = line.split()
            if "[ RUN" in line:
                case = line.split("] ", 1)[1]
            elif line.startswith("  ") and words and words[0] in bounds:
                for word, number in zip(words[::2], words[1::2]):
                    rows.append((word, case, float(number), bounds[word], ""))
        status = 0.0 if p.returncode == 0 else math.inf
        rows.append(("C test", Path(test).name, status, 0.0, p.stderr[-400:] if status else ""))


def driven(driver, case):
    """What infer_dir prints of a checkpoint, as numbers, or the sentence it was refused with."""
    p = subprocess.run(
        [str(driver), str(case), "2"], capture_output=True, text=True, check=False
    )
    return [float(x) for x in p.stdout.split()], p.stderr.strip()


def perturb(file):
    """Moves the largest recorded action by a thousandth: ten times what the loader allows."""
    data, begin, end = golden_actions(file)
    actions = list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    largest = max(range(len(actions)), key=lambda i: abs(actions[i]))
    actions[largest] += 1e-3 * max(1.0, abs(actions[largest]))
    file.write_bytes(data[:begin] + struct.pack(f"<{len(actions)}f", *actions) + data[end:])


def whole_case(driver, case, rows):
    """A checkpoint that carries LeRobot's forward: compared, then refused with another one."""
    numbers, refusal = driven(driver, case)
    if not numbers:
        rows.append(("normalised", case.name, math.inf, BOUND, refusal))
        return
    norm, part, ms, golden = numbers
    rows.append(("normalised", case.name, norm, BOUND, f"{ms:.0f} ms"))
    rows.append(("of-range", case.name, part, BOUND_RANGE, ""))
    rows.append(("golden", case.name, golden if golden >= 0 else math.inf, BOUND, ""))
    perturb(case / "golden.safetensors")
    numbers, refusal = driven(driver, case)
    _, found, why = refusal.partition("golden.safetensors: value")
    good = found and not numbers
    rows.append(("perturbed", case.name, 0.0 if good else math.inf, 0.0, (why or refusal)[:72]))


def whole(python, driver, rows, keep, *which):
    with tempfile.TemporaryDirectory(dir=keep) as tmp:
        run(python, HERE / "era_new.py", tmp, *which, cwd=HERE)
        for case in sorted(Path(tmp).iterdir()):
            whole_case(driver, case, rows)


def trained(args, python, driver, rows):
    """The policy that ships, before pictures of its simulator."""
    with tempfile.TemporaryDirectory() as demos:
        sim = Path(os.path.abspath(args.build)) / "actd-sim"
        run(sim, "--record", demos, "--episodes", 2, "--seed", 3000, stdout=subprocess.DEVNULL)
        whole(python, driver, rows, None, "trained", demos)


def datasets(args, python, rows):
    """dataset.py, in the current LeRobot's environment with what its data sets need (0.4 GB)."""
    code = "import mcap, pyarrow, av, datasets, google.protobuf, PIL"
    quiet = {"capture_output": True, "cwd": tempfile.gettempdir(), "check": False}
    if subprocess.run([str(python), "-c", code], **quiet).returncode:
        wanted = NEW["lerobot"].replace("==", "[dataset]==")
        run(python, "-m", "pip", "install", "--quiet", wanted, "mcap", "protobuf", "pillow")
    actd = Path(os.path.abspath(args.build)) / "actd"
    p = subprocess.run(
        [python, HERE / "dataset.py", "--actd", actd],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("[")]
    rows += [tuple(x) for x in found]
    if p.returncode or not found:
        rows.append(("dataset", "dataset.py", math.inf, 0.0, p.stderr.strip()[-300:]))


# ---- everything -----------------------------------------------------------------------------


def print_table(rows):
    print(f"\n{'what':12} {'case':30} {'worst':>9} {'bound':>8}")
    for what, case, diff, bound, note in rows:
        verdict = "" if diff <= bound else "  FAILED"
        print(f"{what:12} {case:30} {diff:9.1e} {bound:8.0e}{verdict}  {note}".rstrip())
    failed = sum(diff > bound for _, _, diff, bound, _ in rows)
    print(f"\n{len(rows) - failed} passed, {failed} failed")
    return failed


def arguments():
    p = argparse.ArgumentParser(description="actd against LeRobot itself")
    p.add_argument("--venv", type=Path, default=CACHE / "parity-venv", help="current LeRobot")
    p.add_argument(
        "--old-venv", type=Path, default=CACHE / "parity-venv-0.3", help="LeRobot 0.3.x"
    )
    p.add_argument("--old-python", default=None, help="for --old-venv, Python 3.10 or newer")
    p.add_argument(
        "--viewers-venv", type=Path, default=CACHE / "parity-venv-viewers", help="MCAP, Rerun"
    )
    p.add_argument("--only-viewers", action="store_true", help="the recordings alone")
    p.add_argument("--only-datasets", action="store_true", help="the data sets alone")
    p.add_argument("--build", default=str(ROOT / "build"), help="the Makefile's BUILD")
    p.add_argument("--tmp", default=None, help="where default-size checkpoints go (600 MB)")
    p.add_argument("--skip-full", action="store_true", help="leave the default-size models out")
    p.add_argument("--write", action="store_true", help="replace the committed golden data")
    p.add_argument("--yes", action="store_true", help="download without asking")
    return p.parse_args()


def main():
    args, rows = arguments(), []
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if args.only_viewers:
        return viewers(args)
    check_python(sys.executable, NEW, "PYTHON=")
    if args.only_datasets:
        datasets(args, environment(args.venv, sys.executable, NEW, args.yes), rows)
        return 1 if print_table(rows) else 0
    old_base = args.old_python or sys.executable
    check_python(old_base, OLD, "--old-python")
    new = environment(args.venv, sys.executable, NEW, args.yes)
    old = environment(args.old_venv, old_base, OLD, args.yes)
    tests, driver = build(os.path.abspath(args.build))
    with tempfile.TemporaryDirectory() as tmp:
        fresh = Path(tmp)
        run(new, HERE / "era_new.py", fresh, cwd=HERE)
        run(old, HERE / "era_old.py", fresh, cwd=HERE)
        if args.write:
            replace_tree(fresh)
        compare_trees(fresh, rows)
    golden_tests(tests, rows)
    for which in ["carried"] + ([] if args.skip_full else ["full"]):
        whole(new, driver, rows, args.tmp, which)
    trained(args, new, driver, rows)
    datasets(args, new, rows)
    bad = print_table(rows)
    return 1 if viewers(args) or bad else 0


if __name__ == "__main__":
    sys.exit(main())
