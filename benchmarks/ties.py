"""Compare tie rules of SPBP with the backlogs stored in network files.

    python -m benchmarks.ties NETWORKS/ba_*.json

Every line has a file's stored backlog and ours under each rule; the last lines have, for each rule, the
median and the spread of the relative differences and how many are within 5 and 15 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from edgewise.config.errors import ConfigError
from edgewise.systems.multihop.routers import Tie, Ties
from edgewise.systems.multihop.simulate import baseline_run

ENDS: tuple[Tie, ...] = ("highest", "lowest")
RULES = [Ties(links, classes) for links, classes in product(ENDS, repeat=2)]


def stored_backlog(file: Path) -> float:
    """Return the stored backlog of SPBP.

    Raises:
        ConfigError: the file has none.
    """
    try:
        return float(json.loads(file.read_text())["baselines"]["SPBP"]["backlog"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ConfigError(
            f"{file} has no number at baselines.SPBP.backlog", hint="give stored networks"
        ) from problem


def summary(rule: Ties, differences: Sequence[float]) -> str:
    """Describe relative differences to the stored backlogs in one line."""
    each = np.asarray(differences)
    spread = each.std(ddof=1) if len(each) > 1 else float("nan")
    near = [int((np.abs(each) <= bound).sum()) for bound in (0.05, 0.15)]
    return (
        f"links {rule.links}, classes {rule.classes}: median {np.median(each):+.1%}, sd {spread:.1%}, "
        f"within 5 % {near[0]}, within 15 % {near[1]} of {len(each)}"
    )


def main() -> None:
    """Parse the arguments and print both parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    differences: list[list[float]] = [[] for _ in RULES]
    for file in options.files:
        stored = stored_backlog(file)
        runs = [
            baseline_run("spbp", file, slots=options.slots, seeds=options.seeds, ties=rule) for rule in RULES
        ]
        for found, run in zip(differences, runs, strict=True):
            found.append(run.backlog / stored - 1.0)
        print(file.stem, f"stored {stored:.1f}:", *(f"{run.backlog:.1f}" for run in runs), flush=True)
    for rule, found in zip(RULES, differences, strict=True):
        print(summary(rule, found))


if __name__ == "__main__":
    main()
