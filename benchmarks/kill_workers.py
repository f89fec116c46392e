"""Kill workers of runs on a Ray cluster at random moments and check that nothing in the result changes.

    python -m benchmarks.kill_workers --kills 50

Ray is started on this machine for the program alone. A run is trained with workers in this process, and then
with workers of Ray, which get SIGKILL while they collect or evaluate, until there were enough kills. Weights,
replay buffer, metrics and evaluations must be the same to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from benchmarks.kill_resume import RECIPES, SMALL, UNUSED, differences

from edgewise.config.run import AnyRun
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder
from edgewise.scale.division import share_of_worker
from edgewise.scale.workers.local import LocalWorkers, Workers
from edgewise.scale.workers.pool import RayWorkers
from edgewise.scale.workers.sharding import with_workers
from edgewise.scale.workers.worker import Blueprint
from edgewise.training.trainer import Trainer

WORKERS = 2
BATCHES = 60
FRAMES = 32
"""Frames of a batch."""
LONGEST_DELAY = 0.05
"""Seconds between the moment when the run waits for a worker and the kill, at most."""


class KilledWorkers(RayWorkers):
    """Workers that are killed while the run waits for them.

    Attributes:
        kills: so far.
    """

    kills = 0
    most = 0
    dice = random.Random(0)

    def wait(self, numbers: Collection[int]) -> int:
        """Wait for a call, and sometimes kill a worker meanwhile."""
        if self.kills < self.most and len(self.pids) == WORKERS:
            self.kills += 1
            delay = self.dice.choice((0.0, 1.0)) * self.dice.random() ** 2 * LONGEST_DELAY
            threading.Timer(delay, _kill, (self.dice.choice(self.pids),)).start()
        return super().wait(numbers)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def config_of(recipe: str, *, seed: int, staleness: int) -> AnyRun:
    """Return the config of a small run with everything on that can change during a run."""
    chosen = {**SMALL, **RECIPES[recipe], "training.total_frames": FRAMES * BATCHES}
    chosen |= {"evaluation.every": 8 * FRAMES, "checkpoint.every": 8 * FRAMES}
    chosen |= {"seed": seed, "workers": WORKERS, "ray.max_staleness": staleness}
    kept = {name: value for name, value in chosen.items() if value != UNUSED}
    return load_config(recipe, keywords=kept)


def train(config: AnyRun, folder: Path, workers: Workers) -> Path:
    """Train a run with these workers."""
    run = RunFolder.create(folder, config.to_plain())
    with run.locked():
        Trainer(config, with_workers(Builder(config).parts(), config, workers=workers), run).run()
    return run.path


def attack(recipe: str, *, kills: int, seed: int, staleness: int) -> dict[str, Any]:
    """Kill workers of runs of a recipe, and compare each with a run whose workers were left alone."""
    done, runs, wrong = 0, 0, list[str]()
    with tempfile.TemporaryDirectory() as place:
        while done < kills:
            config = config_of(recipe, seed=seed + runs, staleness=staleness)
            blueprint = Blueprint.of(config, num_envs=share_of_worker(config))
            alone = train(config, Path(place) / f"alone-{runs}", LocalWorkers(blueprint))
            workers = KilledWorkers(blueprint, count=WORKERS, settings=config.cluster)
            workers.most, workers.dice = kills - done, random.Random(seed + runs)
            try:
                killed = train(config, Path(place) / f"killed-{runs}", workers)
            finally:
                workers.close()
            done, runs = done + workers.kills, runs + 1
            wrong += [f"{recipe}, run {runs}: {name}" for name in differences(alone, killed)]
    return {"recipe": recipe, "staleness": staleness, "kills": done, "runs": runs, "differences": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50, help="number of SIGKILLs (50)")
    parser.add_argument("--recipe", default="graphwalk-ppo", choices=list(RECIPES), help="recipe to run")
    parser.add_argument("--staleness", type=int, default=0, help="see ray.max_staleness (0)")
    parser.add_argument("--seed", type=int, default=0, help="random seed of runs and kills (0)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = attack(options.recipe, kills=options.kills, seed=options.seed, staleness=options.staleness)
    verdict = "\n".join(found["differences"]) or "bit for bit as if never killed"
    text = f"{found['recipe']}: {found['kills']} kills of workers in {found['runs']} runs: {verdict}"
    print(json.dumps(found) if options.json else text)
    return int(bool(found["differences"]))


if __name__ == "__main__":
    sys.exit(main())
