"""Share of evaluation in the CPU time of recipes, and the interval that would make it a tenth.

    python -m benchmarks.evaluation [--json FILE] [--quick] [RECIPE | RUN ...]

Iterations for at least two CPU-seconds, the baselines and one evaluation, as a run does it, with its replays,
are measured and extrapolated to the recipe's own length. The first iterations are a warm-up; where learning
starts after a number of frames, they are as many as that takes. Replay buffers are still small then, so that
the share in a whole run is lower for algorithms that learn from them. Time to start, to log and to save is
left out, which makes the share larger. Episodes of a trained policy may be shorter: all evaluations but the
first are measured with the policy of the zoo, if the recipe has one there. Of a run folder, the seconds of
the whole run are read from its `timing.csv`. Recipes that need data of their own are left out. `--quick`
measures `graphwalk-ppo` alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import edgewise as ew
from edgewise.config.errors import EdgewiseError
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.plugins import recipes
from edgewise.runs.zoo import FOLDER
from edgewise.training.curriculum import Curriculum
from edgewise.training.iteration import Iteration

SHARE = 0.1
"""Largest share of evaluation that a recipe should have."""
MEASURED_SECONDS = 2.0
COLUMNS = (
    "recipe",
    "share",
    "episodes",
    "every",
    "every for 0.1",
    "training, s",
    "first eval., s",
    "later eval., s",
    "baselines, s",
)


@dataclass(frozen=True)
class Cost:
    """Where the CPU time of a run goes.

    Args:
        frames: of the whole run.
        every: frames between evaluations; None for one at the end.
        episodes: of one evaluation.
        training: CPU-seconds of collecting and learning, over the whole run.
        first: CPU-seconds of the first evaluation, of a policy that has hardly learnt.
        later: CPU-seconds of each other evaluation.
        baselines: CPU-seconds of evaluating all baselines, which a run does once.
    """

    frames: int
    every: int | None
    episodes: int
    training: float
    first: float
    later: float
    baselines: float

    @property
    def evaluations(self) -> int:
        """How many there are: before training unless there is only one, at each multiple, and at the end."""
        return 1 if self.every is None else 1 + math.ceil(self.frames / self.every)

    @property
    def share(self) -> float:
        """Share of evaluation in the CPU time of the run."""
        untrained = 0 if self.every is None else 1
        trained = self.evaluations - untrained
        evaluating = self.baselines + self.first * untrained + self.later * trained
        return evaluating / (evaluating + self.training)

    @property
    def affordable(self) -> int | None:
        """Smallest number of frames between evaluations with a share of a tenth; None if there is none."""
        allowed = self.training * SHARE / (1 - SHARE) - self.baselines - self.first
        intervals = math.floor(allowed / self.later + 1e-9)
        return math.ceil(self.frames / intervals) if intervals > 0 else None

    def row(self, name: str) -> str:
        """Return the figures as a row of a table."""
        affordable = "-" if self.affordable is None else f"{self.affordable:,}"
        every = "-" if self.every is None else f"{self.every:,}"
        seconds = (f"{value:.2f}" for value in (self.training, self.first, self.later, self.baselines))
        return _line(name, f"{self.share:.1%}", self.episodes, every, affordable, *seconds)


def share_of_run(folder: Path) -> float:
    """Return the share of evaluation in the seconds that a run has recorded."""
    with (folder / "timing.csv").open(newline="") as file:
        last = list(csv.DictReader(file))[-1]
    spent = {name: float(last[name]) for name in ("collecting", "learning", "evaluating")}
    return spent["evaluating"] / sum(spent.values())


def measure(name: str) -> Cost:
    """Measure the parts of a recipe, extrapolated to its whole length."""
    torch.set_num_threads(1)
    config = load_config(name)
    parts = Builder(config).parts()
    Curriculum(config.training.curriculum, parts.env).begin()
    with tempfile.TemporaryDirectory() as folder:
        iteration = Iteration(config.training, parts, Path(folder))
        frames, _ = iteration.next(0)
        while frames < getattr(config.algorithm, "learning_starts", 0):
            frames += iteration.next(frames)[0]
        begin, taken = frames, 0.0
        while taken < MEASURED_SECONDS:
            start = time.process_time()
            frames += iteration.next(frames)[0]
            taken += time.process_time() - start
    record = config.logging.replays if parts.replay is not None else 0
    baselines = _seconds(lambda: [parts.evaluate(policy) for policy in parts.baselines.values()])
    first = _seconds(lambda: parts.evaluate(parts.algorithm.policy, record=record))
    later = first
    if (FOLDER / name).is_dir():
        trained = ew.load_policy(f"zoo:{name}")
        later = _seconds(lambda: parts.evaluate(trained, record=record))
    total, chosen = config.training.total_frames, config.evaluation
    return Cost(
        frames=total,
        every=chosen.every,
        episodes=sum(stage.episodes for stage in chosen.stages) or chosen.episodes,
        training=taken * total / (frames - begin),
        first=first,
        later=later,
        baselines=baselines,
    )


def _seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def _line(*cells: object) -> str:
    return f"{cells[0]!s:24s}" + "".join(f"{cell!s:>15s}" for cell in cells[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "recipes", nargs="*", metavar="RECIPE", help="recipes or run folders; all recipes if not given"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one recipe")
    options = parser.parse_args()
    names = options.recipes or (["graphwalk-ppo"] if options.quick else list(recipes()))
    figures: dict[str, dict[str, float | None]] = {}
    print(_line(*COLUMNS), flush=True)
    for name in names:
        if (Path(name) / "timing.csv").is_file():
            figures[name] = {"share": share_of_run(Path(name))}
            print(_line(name, f"{figures[name]['share']:.1%}"), flush=True)
            continue
        try:
            found = measure(name)
        except EdgewiseError as error:
            print(f"{name}: left out: {error.message}", flush=True)
            continue
        figures[name] = {**asdict(found), "share": found.share, "every for 0.1": found.affordable}
        print(found.row(name), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
