"""Share of evaluation in the CPU time of recipes, and the interval that would make it a tenth.

    python -m benchmarks.evaluation [--json FILE] [--quick] [RECIPE ...]

One evaluation, the baselines and two iterations of each recipe are measured, the first iteration as a
warm-up, and extrapolated to the recipe's own length. Replay buffers are still small then, so that the share
in a whole run is lower for algorithms that learn from them. Recipes that need data of their own are left out.
`--quick` measures `graphwalk-ppo` alone.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from edgewise.config.errors import EdgewiseError
from edgewise.config.plugins import recipes
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.training.iteration import Iteration

SHARE = 0.1


def seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def measure(name: str) -> dict[str, float]:
    """Measure CPU seconds of the parts of a recipe, and the share of evaluation in a whole run."""
    torch.set_num_threads(1)
    config = load_config(name)
    parts = Builder(config).parts()
    with tempfile.TemporaryDirectory() as folder:
        iteration = Iteration(config.training, parts, Path(folder))
        frames, _ = iteration.next(0)
        learning = seconds(lambda: iteration.next(frames))
    baselines = seconds(lambda: [parts.evaluate(policy) for policy in parts.baselines.values()])
    evaluation = seconds(lambda: parts.evaluate(parts.algorithm.policy))
    total, every = config.training.total_frames, config.evaluation.every
    count = 1 if every is None else 1 + math.ceil(total / every)
    training = learning * total / frames
    evaluating = baselines + evaluation * count
    affordable = (training * SHARE / (1 - SHARE) - baselines) / evaluation - 1
    return {
        "iteration, s": learning,
        "evaluation, s": evaluation,
        "baselines, s": baselines,
        "run, s": training + evaluating,
        "share of evaluation": evaluating / (training + evaluating),
        "every": math.inf if every is None else every,
        "every for a share of 0.1": total / affordable if affordable > 0 else math.inf,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help="recipes; all if not given")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one recipe")
    options = parser.parse_args()
    names = options.recipes or (["graphwalk-ppo"] if options.quick else sorted(recipes()))
    figures = {}
    for name in names:
        try:
            figures[name] = measure(name)
        except EdgewiseError as error:
            print(f"{name}: left out: {error.message}")
            continue
        print(name, *(f"{key} {value:.4g}" for key, value in figures[name].items()), sep="\n  ", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
