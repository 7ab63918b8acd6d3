"""actd against the engines a user could take instead: `make bench-peers PYTHON=…`.

ONNX Runtime, OpenVINO, PyTorch eager and compiled, all float32, and build/bench_serve take turns
over the same LeRobot checkpoint on the same cores, A B C D A B C D; every round has an FMA probe
before and after it, and rounds in which the cores were not really there are dropped. Writes
tests/bench/RESULTS.md. `--help` lists what can be left out; --quick is 3 minutes and rough.

What is slow to make (checkpoints, ONNX files, compiled kernels) is kept in ~/.cache/actd/peers.
"""

import argparse
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import peers_hold
import peers_make
import peers_report
from peers_process import Engine, Failed, Probe, stop_all

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = peers_report.OURS  # the float32 one; with the same words before: other precisions
# Of the normalised actions, against LeRobot's own. Weights here are random and so worse for
# 8 and 16 bits than trained ones, whose deviation is measured in the joints' units at load.
BOUND = {"float32": 1e-4, "bf16": 0.1, "int8": 0.1}
# Of the best that the probe reached in the whole run. Below: a neighbour, or half a core.
PROBE_NEED = {1: 0.83, 2: 0.80}
TURN_MS, MOST_RUNS = 600, 30  # of one engine in one round
# import name: (what to install, for which engines; None = all)
PACKAGES = {
    "torch": ("torch", None),
    "lerobot": ("lerobot", None),
    "onnx": ("onnx", None),
    "onnxscript": ("onnxscript", None),
    "onnxruntime": ("onnxruntime", "onnxruntime"),
    "openvino": ("openvino", "openvino"),
}
# Forms of an engine that are worth trying; the fastest of each case and thread count takes part.
VARIANTS = {
    "onnxruntime": lambda threads: [
        export + idle
        for export in ("legacy", "dynamo")
        for idle in ([""] if threads == 1 else ["+spin", "+sleep"])
    ],
    "openvino": lambda threads: ["legacy", "dynamo"],
    "torch eager": lambda threads: ["channels_last", "plain"],
    "torch compile": lambda threads: ["aot+freezing"],
}
# --more-forms tries these as well. Processor milliseconds of case d on one Zen 5 core: jit 86,
# jit+freezing 54, aot+freezing 35, aot+freezing+autotune 36.
MORE = {"torch compile": ["jit+freezing", "aot+freezing+autotune"]}
QUICK = {
    "onnxruntime": lambda threads: ["dynamo" if threads == 1 else "dynamo+spin"],
    "openvino": lambda threads: ["dynamo"],
    "torch eager": lambda threads: ["channels_last"],
}


def say(text):
    print(f"peers: {text}", flush=True)


# ---- what must be there ---------------------------------------------------------------------


def check_packages(engines):
    lacking = [
        what
        for name, (what, engine) in PACKAGES.items()
        if engine in (None, *engines) and not importlib.util.find_spec(name)
    ]
    if lacking:
        names, it = " ".join(lacking), "is" if len(lacking) == 1 else "are"
        raise Failed(
            f"{names} {it} missing: `{sys.executable} -m pip install {names}`, "
            "or give PYTHON=… of a virtual environment that has everything."
        )
    if "torch compile" in engines and not shutil.which(os.environ.get("CXX", "g++")):
        raise Failed(
            "PyTorch's compiler needs a C++ compiler: `apt-get install g++`, or leave it out "
            "with --without 'torch compile'."
        )


def check_cores(cores):
    allowed = os.sched_getaffinity(0)
    if len(cores) < 2 or len(set(cores)) < len(cores) or not set(cores) <= allowed:
        raise Failed(
            f"--cores {','.join(map(str, cores))}: two different ones of "
            f"{','.join(map(str, sorted(allowed)))} are needed."
        )


def versions():
    return {n: version(n) for n in ("torch", "lerobot", "onnxruntime", "openvino", "onnx")
            if importlib.util.find_spec(n)}


def prepare(cache, name):
    """The directory of a case; made unless one by the same versions and recipe is there."""
    made_by = json.dumps(
        {**versions(), "recipe": (HERE / "peers_make.py").read_text()}, sort_keys=True
    )
    where, mark = cache / name, cache / name / "made_by.json"
    if mark.exists() and mark.read_text() == made_by:
        return where
    say(f"case {name}: making a checkpoint and its exports (half a minute, kept in {where})")
    part = cache / f"{name}.part"
    for old in (where, part):
        shutil.rmtree(old, ignore_errors=True)
    log = cache / "logs" / f"make-{name}.log"
    command = [sys.executable, HERE / "peers_make.py", part, name]
    child = Engine(f"making case {name}", command, env_of(cache), log)
    try:
        child.expect("peers:", 900)
        child.process.wait()
        (part / "made_by.json").write_text(made_by)
        part.rename(where)
    finally:
        child.stop()
        shutil.rmtree(part, ignore_errors=True)
    return where


# ---- the contestants ------------------------------------------------------------------------


def env_of(cache, threads=1, cores=()):
    """GNU OpenMP (PyTorch) with one thread bound to each core; oneDNN without shortcuts.

    OpenBLAS' variables concern none of the peers: they carry MKL, oneDNN, MLAS.
    """
    places = {"OMP_PLACES": ",".join(f"{{{c}}}" for c in cores)} if cores else {}
    return {
        "OMP_NUM_THREADS": str(threads),
        "OMP_PROC_BIND": "close",
        "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TMPDIR": str(cache / "tmp"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **places,
    }


def is_ours(engine):
    return engine.startswith(OURS)


def env_of_isa(args):
    """Holds oneDNN (OpenVINO, PyTorch) and ATen to AVX2; the rest peers_hold does."""
    if args.isa == "best":
        return {}
    return {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "PYTHONPATH": str(args.held)}


def start(args, engine, variant, where, threads):
    cores = args.cores[:threads]
    pinned = ",".join(map(str, cores))
    log = args.cache / "logs" / f"{where.name}{threads}-{engine}-{variant}.log".replace(" ", "_")
    if is_ours(engine):
        command = [args.serve, where, threads, pinned, args.isa, variant]
        env = {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}
    else:
        script = HERE / "peers_engine.py"
        command = [sys.executable, script, engine, variant, where, threads, pinned]
        env = {**env_of(args.cache, threads, cores), **env_of_isa(args)}
    e = Engine(f"{engine} {variant}".strip(), command, env, log)
    e.engine, e.variant = engine, variant
    return e


def check_answer(args, e, want):
    """LeRobot's own answer, or it does not take part."""
    e.run(1)
    got = e.actions(args.cache / "actions.f32")
    if len(got) != len(want):
        raise Failed(f"{e.name}: {len(got)} values instead of {len(want)}.")
    e.off = max(abs(x - y) for x, y in zip(got, want))
    bound = BOUND[e.variant if is_ours(e.engine) else "float32"]
    if not e.off <= bound:  # a NaN is not
        raise Failed(f"{e.name}: actions are off by {e.off:.1e}, more than {bound:.0e}.")


def contestants(args, where, threads, want):
    """Every form of every engine that starts and answers right; ours must."""
    table = QUICK if args.quick else VARIANTS
    wanted = [(OURS, "float32")] + [(f"{OURS} {p}", p) for p in args.precisions]
    for n in args.engines:
        more = MORE.get(n, []) if args.more_forms else []
        wanted += [(n, v) for v in table.get(n, VARIANTS[n])(threads) + more]
    good, refused = [], []
    for engine, variant in wanted:
        e = start(args, engine, variant, where, threads)
        try:
            e.ready(900)
            check_answer(args, e, want)
            good.append(e)
            say(f"  {e.name}: ready, off by {e.off:.1e}")
        except Failed as failure:
            e.stop()
            if is_ours(engine):
                raise
            refused.append(str(failure))
            say(f"  left out: {failure}{failure.log}")
    return good, refused


def turn(e, ms=TURN_MS):
    """One engine's turn; the first inference, after somebody else's, does not count."""
    e.guess = e.run(1)[0][0] if not hasattr(e, "guess") else e.guess
    times = e.run(1 + max(2, min(MOST_RUNS, round(ms / e.guess))))[1:]
    e.guess = statistics.median(w for w, _ in times)
    return e.guess, statistics.median(c for _, c in times)


def heats(entries):
    """The fastest form of every engine, by the best of three turns; the others are stopped."""
    best, tried = {}, {}
    for e in entries:
        e.heat = float("inf")
        e.rivals = sum(other.engine == e.engine for other in entries) - 1
    for _ in range(3):
        for e in entries:
            if e.rivals:
                e.heat = min(e.heat, turn(e, 200)[0])
    for e in entries:
        tried.setdefault(e.engine, {})[e.variant] = e.heat
        if e.engine not in best or e.heat < best[e.engine].heat:
            best[e.engine] = e
    for e in entries:
        if best[e.engine] is not e:
            e.stop()
    return list(best.values()), tried


# ---- rounds ---------------------------------------------------------------------------------


def probes(probe):
    return {n: probe.measure(n) for n in (1, 2)}


def one_round(probe, entries):
    before = probes(probe)
    times = {e.engine: turn(e) for e in entries}
    return {"before": before, "times": times, "after": probes(probe)}


def is_valid(args, r, threads, best):
    """Were the cores there, before and after? One core's work needs only that one."""
    return args.any_round or all(
        r[when][n] >= PROBE_NEED[n] * best[n]
        for when in ("before", "after")
        for n in range(1, threads + 1)
    )


def best_probe(probe):
    return {n: probe.best[n, probe.isa] for n in (1, 2)}


def race(args, probe, where, threads, want):
    entries, refused = contestants(args, where, threads, want)
    entries, tried = heats(entries)
    rounds = []
    end = time.monotonic() + args.seconds
    while len(rounds) < 2 or time.monotonic() < end:
        rounds.append(one_round(probe, entries))
        good = sum(is_valid(args, r, threads, best_probe(probe)) for r in rounds)
        if good >= args.rounds:
            break
    say(f"  {len(rounds)} rounds, {good} valid: "
        + ", ".join(f"{e.engine} {e.guess:.1f} ms" for e in entries))
    facts = {
        e.engine: {**e.facts, "variant": e.variant, "off": e.off, "tried": tried[e.engine]}
        for e in entries
    }
    for e in entries:
        e.stop()
    return {"case": where.name, "threads": threads, "rounds": rounds, "facts": facts,
            "refused": refused}


def judge(args, races, best):
    """Marks every round; only now is the best of the probe known."""
    for x in races:
        for r in x["rounds"]:
            r["valid"] = is_valid(args, r, x["threads"], best)


def alone(cache):
    """The lock of the cache, held as long as this process lives, and an empty place in it."""
    cache.mkdir(parents=True, exist_ok=True)
    lock = os.open(cache / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failed(f"another run uses {cache}: wait for it, or give --cache.") from None
    sweep(cache)
    (cache / "tmp").mkdir()


def sweep(cache):
    for left in [cache / "tmp", *cache.glob("*/*.part.pt2"), cache / "actions.f32"]:
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def whole(args):
    for program in (args.serve, args.probe):
        if not program.exists():
            raise Failed(f"{program} is missing: `make {program}`, or call make bench-peers.")
    check_cores(args.cores)
    check_packages(args.engines)
    alone(args.cache)
    args.locked = True
    places = {name: prepare(args.cache, name) for name in args.cases}
    if args.isa != "best":
        args.held, asked = peers_hold.hold(args.cache, args.engines)
        say("held to AVX2: " + ", ".join(f"{n} ({k} questions)" for n, k in asked.items()))
    probe = Probe("fma_probe", [args.probe, ",".join(map(str, args.cores))], {},
                  args.cache / "logs" / "probe.log").ready()
    for n, isa in sorted(probe.best) * 5:
        probe.measure(n, isa)
    races, start_s = [], time.monotonic()  # of the measuring alone
    for name, where in places.items():
        _, want = peers_make.load_inputs(where)
        for threads in args.threads:
            say(f"case {name}, {threads} thread(s)")
            races.append(race(args, probe, where, threads, want.ravel().tolist()))
    judge(args, races, best_probe(probe))
    run = {
        "races": races,
        "probe_isa": probe.isa,
        "probe_best": [[n, isa, v] for (n, isa), v in sorted(probe.best.items())],
        "probe_need": PROBE_NEED,
        "versions": versions(),
        "minutes": (time.monotonic() - start_s) / 60,
        "quick": args.quick,
        "any_round": args.any_round,
        "isa": args.isa,
        "cores": args.cores,
    }
    (args.cache / "last.json").write_text(json.dumps(run))
    peers_report.write(args.output, run)
    say(f"written: {args.output}")


def arguments():
    p = argparse.ArgumentParser(description="actd against ONNX Runtime, OpenVINO and PyTorch")
    p.add_argument("--build", type=Path, default=ROOT / "build", help="the Makefile's BUILD")
    p.add_argument("--cache", type=Path, default=Path.home() / ".cache/actd/peers")
    p.add_argument("--output", type=Path, help="default tests/bench/RESULTS.md (--quick: BUILD)")
    p.add_argument("--cases", default="abcde", help="some of abcde")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--cores", default="0,1", help="the first is the caller's")
    p.add_argument("--rounds", type=int, help="valid ones wanted (9; --quick: 2)")
    p.add_argument("--seconds", type=float, help="most for the rounds of a case (80; --quick: 9)")
    p.add_argument("--without", action="append", default=[], choices=list(VARIANTS))
    p.add_argument("--precisions", default="int8,bf16", help="of actd, beside float32; or none")
    p.add_argument("--isa", default="best", choices=["best", "avx2"],
                   help="avx2: hold all to it, actd without VNNI (RESULTS-avx2.md)")
    p.add_argument("--more-forms", action="store_true", help="more of PyTorch (20 min more)")
    p.add_argument("--any-round", action="store_true", help="drop none (a machine never quiet)")
    p.add_argument("--quick", action="store_true", help="3 minutes: one form each, not compiled")
    a = p.parse_args()
    a.cases = [c for c in peers_make.CASES if c in a.cases]
    a.threads = [int(t) for t in a.threads.split(",") if t in ("1", "2")]
    a.cores = [int(c) for c in a.cores.split(",")]
    a.engines = [e for e in (QUICK if a.quick else VARIANTS) if e not in a.without]
    a.precisions = [p for p in a.precisions.split(",") if p in BOUND and p != "float32"]
    a.rounds = a.rounds or (2 if a.quick else 9)
    a.seconds = a.seconds or (9 if a.quick else 80)
    results = "RESULTS.md" if a.isa == "best" else f"RESULTS-{a.isa}.md"
    a.output = a.output or (a.build / "RESULTS-quick.md" if a.quick else HERE / results)
    a.locked = False
    a.build, a.cache = a.build.resolve(), a.cache.resolve()
    a.serve, a.probe = a.build / "bench_serve", a.build / "fma_probe"
    return a


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    try:
        whole(args)
    except Failed as failure:
        say(f"{failure}{failure.log}")
        return 1
    except KeyboardInterrupt:
        say("stopped; nothing was written")
        return 130
    finally:
        stop_all()
        if args.locked:
            sweep(args.cache)
    return 0


if __name__ == "__main__":
    sys.exit(main())
