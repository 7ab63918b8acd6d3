#!/usr/bin/python3
"""Faults of whole processes: real binaries, the machine's own time, so the gates are loose.

    process.py BUILD [--only PART] [--tap]        each fault once
    process.py BUILD --blind [...]                with its detectors off: BUILD/blind/tests/fault/actd

One line per fault: injected, detected after, bound, action, reason, verdict. Run from the top of
the tree; the protobuf modules are made there. Ends only the processes that it began. The rows are in
the modules that are imported last.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from process_kit import ROWS, Place, Problem

import process_signals  # noqa: F401
import process_peers  # noqa: F401
import process_limits  # noqa: F401
import process_files  # noqa: F401

TRIES = 6  # a busy machine keeps the simulated robot waiting, which is a fault of its own; and of a
#            process held back as a whole either the loop or the bus is kept waiting first


def attempt(build, function, environment):
    place = Place(build, environment)
    try:
        return function(place), None
    except Problem as e:
        return (None, "", "-"), str(e)
    except Exception as e:  # a row that can not be run has failed
        return (None, "", "-"), f"{type(e).__name__}: {e}"
    finally:
        place.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--only", default="")
    p.add_argument("--blind", action="store_true")
    p.add_argument("--tap", action="store_true")
    o = p.parse_args()
    python = tempfile.mkdtemp(prefix="actd-fault-py.")
    subprocess.run(["protoc", "-Iproto", f"--python_out={python}", *glob.glob("proto/actd/v1/*.proto")],
                   check=True)
    sys.path.insert(0, python)
    n = good = 0
    print("\nwhole processes" if not o.tap else "")
    for name, bound, detector, complaint, function in ROWS:
        if o.only not in name or (o.blind and detector is None):
            continue
        environment = {"ACTD_BLIND": str(sum(1 << d for d in detector))} if o.blind else {}
        for tries in range(1, TRIES + 1):
            (took, action, why), problem = attempt(os.path.abspath(o.build), function, environment)
            proof = problem is not None and re.search(complaint or "", problem) is not None
            if problem is None or (o.blind and proof):
                break
        if not problem and action.startswith("not on this machine"):
            print(f"{name:44} # SKIP {action}")
            continue
        as_it_must = proof if o.blind else problem is None
        n, good = n + 1, good + as_it_must
        if o.tap:
            print(f"{'ok' if as_it_must else 'not ok'} {n} - {name}" + (f" # {problem}" if problem else ""))
        elif o.blind:
            # That it does not run, or complains of something else, is no proof.
            verdict = "fails as it must" if proof else "PROVES NOTHING" if problem else "STILL PASSES"
            print(f"{name:44} without detector {'+'.join(map(str, detector)):8} "
                  f"{verdict:28} {(problem or '')[:70]}")
        else:
            took = "-" if took is None else f"{took:.2f} s"
            print(f"{name:44} {took:>13}          {action:44.44} {why:20.20} {bound:34.34} "
                  f"{'ok' if as_it_must else 'FAILED'}" + (f" (in try {tries})" if tries > 1 else ""))
            if problem:
                print(f"    {problem}")
        sys.stdout.flush()
    shutil.rmtree(python)
    print(f"{n} faults of processes: {good} {'fail without their detector' if o.blind else 'as they must'}")
    sys.exit(0 if n and good == n else 1)


if __name__ == "__main__":
    main()
