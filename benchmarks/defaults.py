"""Runs without a recipe: CPU time, time to the first line of progress, and the share of evaluation.

    python -m benchmarks.defaults [--pairs hex:dqn,swarm:sac] [--frames 16384] [--json FILE] [--quick]

Every pair is trained by the command of a user, `edgewise train ENV --algorithm NAME --total-frames N`, in a
process of its own, one after the other. *CPU* is user and system time of that process, from its start to
its end; *evaluating* is the share of evaluation in collecting, learning and evaluating, from `timing.csv`;
*first line* is the time by the clock to the first line of progress. A pair that cannot learn is refused:
its message is shown.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PAIRS = [
    f"{env}:{name}"
    for env in ("graphwalk", "hex", "swarm", "queueing")
    for name in ("dqn", "rainbow", "iqn", "sac")
]


def measure(env: str, algorithm: str, *, frames: int, folder: Path) -> dict[str, Any]:
    """Train a pair, and return what it took."""
    out = folder / f"{env}-{algorithm}"
    command = [sys.executable, "-m", "edgewise", "train", env, "--algorithm", algorithm]
    command += ["--total-frames", str(frames), "--out", str(out)]
    before, began, first = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), None
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.strip())
        if first is None and " frames" in line:
            first = time.perf_counter() - began
    code, after = process.wait(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found: dict[str, Any] = {
        "cpu": after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime,
        "first_line": first,
        "code": code,
    }
    if code:
        return {**found, "message": next((line for line in lines if line.startswith("error")), lines[-1:])}
    with (out / "timing.csv").open() as file:
        last = [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)][-1]
    spent = last["collecting"] + last["learning"] + last["evaluating"]
    return {**found, "share": last["evaluating"] / spent}


def main() -> None:
    """Measure all pairs and print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", default=",".join(PAIRS), help="ENV:ALGORITHM, separated by commas")
    parser.add_argument("--frames", type=int, default=16_384)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one pair for 4,096 frames")
    options = parser.parse_args()
    pairs, frames = options.pairs.split(","), options.frames
    if options.quick:
        pairs, frames = pairs[:1], 4_096
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs:
            found = measure(*pair.split(":"), frames=frames, folder=Path(folder))
            figures[pair] = found
            if found["code"]:
                print(f"{pair:20s} refused: {found['message']}", flush=True)
                continue
            print(
                f"{pair:20s} {found['cpu']:6.1f} CPU-s, evaluating {found['share']:.0%}, "
                f"first line after {found['first_line']:.1f} s",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
