"""Writes RESULTS.md from what peers.py measured.

python peers_report.py LAST.json OUT.md     again, from the run that the cache keeps
"""

import datetime
import json
import os
import platform
import statistics
import sys
from pathlib import Path

import peers_make

OURS = "actd"
ORDER = [OURS, f"{OURS} int8", f"{OURS} bf16", "onnxruntime", "openvino", "torch eager",
         "torch compile"]
INT8_BAR = 0.5  # of the fastest float32 peer, cases a to c, on AVX2
BARS = {"a": (0.65, 0.75), "b": (0.65, 0.75), "c": (0.65, 0.75), "d": (0.75, 0.8),
        "e": (0.75, 0.8)}


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def cpu_kind():
    """Family and model: a virtual machine's name often says less."""
    wanted, found = ("cpu family", "model"), []
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in wanted and len(found) < 2:
            found.append(f"{key.strip().replace('cpu ', '')} {value.strip()}")
    return ", ".join(found)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(r) + " |" for r in rows] + [""]


def ms(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def rounds_of(race, engine, part):
    """Medians of an engine's turns, of the valid rounds; part 0: wall, 1: processor."""
    return [r["times"][engine][part] for r in race["rounds"] if r["valid"]]


class Race:
    """One case with one thread count, summed up."""

    def __init__(self, race):
        self.race, self.case, self.threads = race, race["case"], race["threads"]
        self.all = len(race["rounds"])
        self.valid = sum(r["valid"] for r in race["rounds"])
        self.engines = [e for e in ORDER if e in race["facts"]]
        self.wall = self.medians(0)
        self.cpu = self.medians(1)
        peers = [e for e in self.engines if not e.startswith(OURS) and e in self.wall]
        self.fastest = min(peers, key=self.wall.get) if peers else None
        self.ratios = self.ratios_of(OURS)

    def ratios_of(self, engine):
        if not self.fastest or engine not in self.wall:
            return []
        pairs = zip(rounds_of(self.race, engine, 0), rounds_of(self.race, self.fastest, 0))
        return [ours / theirs for ours, theirs in pairs]

    def medians(self, part):
        values = {e: rounds_of(self.race, e, part) for e in self.engines}
        return {e: statistics.median(v) for e, v in values.items() if v}

    def ratio(self):
        return statistics.median(self.ratios) if self.ratios else None

    def label(self):
        return [f"{self.case}: {peers_make.CASES[self.case][0]}", str(self.threads)]


def main_table(races, engines):
    rows = []
    for x in races:
        cells = [ms(x.wall[e]) if e in x.wall else "–" for e in engines]
        bar = BARS[x.case][x.threads - 1]
        ratio, spread, met = "–", "–", "–"
        if x.ratios:
            ratio = f"**{x.ratio():.2f}** of {x.fastest}"
            spread = f"{min(x.ratios):.2f} to {max(x.ratios):.2f}"
            met = f"{bar:.2f} {'met' if x.ratio() <= bar else 'missed'}"
        rows.append([*x.label(), *cells, ratio, spread, met, f"{x.valid}/{x.all}"])
    head = ["case", "threads", *engines, "actd / fastest peer", "over the rounds", "bar",
            "valid rounds"]
    return table(head, rows)


def precision_table(races, engines):
    """The other precisions against the fastest peer, which computes in float32."""
    others = [e for e in engines if e.startswith(OURS) and e != OURS]
    rows = []
    for x in races:
        cells = []
        for e in others:
            ratios = x.ratios_of(e)
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to "
                         f"{max(ratios):.2f})" if ratios else "–")
        int8 = x.ratios_of(f"{OURS} int8")
        barred = int8 and x.case in "abc"
        met = "met" if barred and statistics.median(int8) <= INT8_BAR else "missed"
        rows.append([*x.label(), *cells, f"{INT8_BAR:.2f} {met}" if barred else "–"])
    return table(["case", "threads", *others, "bar of int8"], rows)


def share_table(races, engines, best):
    """Nominal operations per second, as a share of the probe's best."""
    rows = []
    for x in races:
        gflop, peak = 2 * peers_make.CASES[x.case][5], best[x.threads]
        rates = {e: 1e3 * gflop / w for e, w in x.wall.items()}
        cells = [f"{rates[e]:.0f} ({100 * rates[e] / peak:.0f} %)" if e in rates else "–"
                 for e in engines]
        rows.append([*x.label(), *cells])
    return table(["case", "threads", *engines], rows)


def cpu_table(races, engines):
    rows = [[x.label()[0], *[ms(x.cpu[e]) if e in x.cpu else "–" for e in engines]]
            for x in races if x.threads == 1]
    return table(["case", *engines], rows)


def settings_table(races):
    rows = []
    for x in races:
        for e, f in x.race["facts"].items():
            if e.startswith(OURS):
                how = f"kernels {f.get('isa', '?')}; load {f['load_ms']} ms, weights " \
                      f"{f['weights_mib']} MiB, work {f['work_mib']} MiB"
            else:
                how = f.get("settings", "")
                others = [f"{v} {ms(t)}" for v, t in f["tried"].items() if v != f["variant"]]
                how += f" (best of three turns {ms(f['tried'][f['variant']])}; " \
                       f"{', '.join(others)})" if others else ""
            rows.append([f"{x.case} {x.threads}", e, how, f"{f['off']:.1e}"])
    return table(["case, threads", "engine", "form that took part (ms of the others)",
                  "off by"], rows)


def isa_lines(races):
    seen = {}
    for x in races:
        for e, f in x.race["facts"].items():
            seen.setdefault(e, f.get("isa"))
    return [f"- {e}: {isa}" for e, isa in seen.items() if isa]


def head_lines(run, best):
    v = run["versions"]
    probe = "; ".join(
        f"{isa} " + " / ".join(f"{g:.0f}" for n, i, g in run["probe_best"] if i == isa)
        for isa in dict.fromkeys(i for _, i, _ in run["probe_best"])
    )
    valid = sum(r["valid"] for x in run["races"] for r in x["rounds"])
    all_rounds = sum(len(x["rounds"]) for x in run["races"])
    need = ", ".join(f"{100 * s:.0f} % of the best with {n} thread{'s' * (int(n) > 1)}"
                     for n, s in run["probe_need"].items())
    if run["any_round"]:
        need = "anything at all"
    lines = [
        f"{datetime.date.today()}, {run['minutes']:.0f} minutes; {cpu_model()} ({cpu_kind()}), "
        f"{os.cpu_count()} cores, used: {', '.join(map(str, run['cores']))}; Linux "
        f"{platform.release()}; Python {platform.python_version()}, "
        + ", ".join(f"{n} {x}" for n, x in v.items()) + ".",
        "",
        f"FMA probe, GFLOP/s on 1 / 2 threads, best of the run: {probe}. A round counts when "
        f"the probe reached {need}, before and after it: {valid} of {all_rounds} did.",
        "",
    ]
    if best[2] < 1.5 * best[1]:
        lines += ["**The second core never gave more than half of what it should: nothing here "
                  "about 2 threads is to be believed.**", ""]
    if run["any_round"]:
        lines += ["**`--any-round`: rounds count whatever the probe said. On a machine with other "
                  "work the table of processor time below says more than the wall's clock.**", ""]
    if run.get("isa", "best") != "best":
        lines += ["**Held to AVX2, without VNNI: actd by its own choice, oneDNN and ATen by their "
                  "settings, ONNX Runtime and OpenVINO in copies that are told by XGETBV that the "
                  "system keeps no more than AVX's registers (`peers_hold.py`).**", ""]
    if run["quick"]:
        lines += ["**`--quick`: one form of each engine, few rounds, nothing compiled. Rough.**", ""]
    return lines


BELOW = """
Every engine has a process of its own with the same LeRobot checkpoint (random weights of a fixed
seed, LeRobot's own `save_pretrained`), the same picture and the same cores; they take turns, round
after round. A turn's first inference does not count, the median of the others does; the table has
the medians over valid rounds, and the ratio is the median of the rounds' own ratios. actd starts
from uint8 pixels and ends with actions in the robot's units; the others get normalised float32 and
leave normalised actions, so their part of that work is not counted. Whoever is off by more than
1e-4 from LeRobot's own answer does not take part (int8 and bf16: 0.1; these weights are random).
That is the bound of taking part: actd's own, in float32, is 2e-5 (`make parity`).
"""


def text(run):
    best = {n: g for n, isa, g in run["probe_best"] if isa == run["probe_isa"]}
    held = {n: g for n, isa, g in run["probe_best"] if isa == run.get("isa")}
    best = held or best
    races = [Race(x) for x in run["races"]]
    engines = [e for e in ORDER if any(e in x.engines for x in races)]
    refused = sorted({f"- {r}" for x in run["races"] for r in x["refused"]})
    lines = ["# actd beside the engines a user could take instead", "", *head_lines(run, best)]
    lines += ["Milliseconds per inference, float32 where nothing else is said:", "", *main_table(races, engines)]
    if any(e.startswith(OURS) and e != OURS for e in engines):
        lines += ["Other precisions of actd, as a share of the fastest peer's float32:", "",
                  *precision_table(races, engines)]
    lines += [BELOW.strip(), ""]
    lines += ["## Again", "", "    make bench-peers PYTHON=…      (BENCH_ARGS=--quick: 3 minutes)", ""]
    lines += [f"## GFLOP/s of nominal operations, and share of the "
              f"{run['isa'] if held else run['probe_isa']} probe", "",
              *share_table(races, engines, best)]
    lines += ["## Processor milliseconds with one thread", "",
              "Says what the work costs when the wall's clock no longer does.", "",
              *cpu_table(races, engines)]
    lines += ["## Forms and settings", "", *settings_table(races)]
    lines += ["Instruction sets, as the engines say:", "", *isa_lines(races), ""]
    lines += ["Left out:", "", *refused, ""] if refused else []
    return "\n".join(lines).rstrip() + "\n"


def write(path, run):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text(run))
    part.replace(path)


if __name__ == "__main__":
    write(sys.argv[2], json.loads(Path(sys.argv[1]).read_text()))
