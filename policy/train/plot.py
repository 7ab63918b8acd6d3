#!/usr/bin/env python3
"""Draws the loss curve of one or more log.csv of train.py, end to end, as a small PNG.

    python policy/train/plot.py runs/a/log.csv runs/b/log.csv --out config/policies/reach/loss.png
"""

import argparse
import csv

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("logs", nargs="+")
    p.add_argument("--out", required=True)
    args = p.parse_args()
    rows, starts, offset = [], [], 0.0
    for path in args.logs:
        part = [{k: float(v) for k, v in r.items()} for r in csv.DictReader(open(path))]
        part = [r for r in part if r["step"] >= 100]
        rows += [dict(r, minutes=r["minutes"] + offset) for r in part]
        offset = rows[-1]["minutes"]
        starts.append(offset)
    t = [r["minutes"] for r in rows]

    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), dpi=90, layout="constrained")
    left.semilogy(t, [r["loss"] for r in rows], label="training loss (normalised L1)")
    left.semilogy(t, [r["val_rad"] for r in rows], label="validation error (rad)")
    right.semilogy(t, [r["tip_median_mm"] for r in rows], label="median")
    right.semilogy(t, [r["tip_95_mm"] for r in rows], label="95 %")
    left.set_title("loss")
    right.set_title("validation: tip 1 s ahead, error in mm")
    for ax in (left, right):
        for s in starts[:-1]:
            ax.axvline(s, color="0.7", linewidth=0.8, linestyle=":")
        ax.set_xlabel("minutes")
        ax.grid(True, which="both", alpha=0.25)
        ax.legend(frameon=False)
    fig.savefig(args.out)


if __name__ == "__main__":
    main()
