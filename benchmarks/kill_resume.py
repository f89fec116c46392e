"""Kill a run repeatedly at random moments and check that it ends bit for bit like an uninterrupted one.

    python -m benchmarks.kill_resume --kills 100

A parent process imports everything once and forks a child for every attempt, so a kill costs no import. The
child writes its phase into shared memory; the parent waits for a chosen phase and a random time, then sends
SIGKILL. The tests also cover separate processes that are started from the command line.
"""

from __future__ import annotations

import argparse
import json
import logging
import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.training.checkpoint import store as checkpoint
from edgewise.training.run_evaluator import RunEvaluator
from edgewise.training.run_folder import RunFolder
from edgewise.training.trainer import Trainer

PHASES = ("starting", "collecting", "updating", "evaluating", "saving")
SMALL = {
    "training.total_frames": 384,
    "training.num_envs": 4,
    "training.rollout_length": 8,
    "training.schedules": {"learning_rate": {"kind": "linear", "start": 1e-3}},
    "model.encoder.hidden": 16,
    "model.encoder.layers": 1,
    "model.encoder.heads": 2,
    "algorithm.epochs": 2,
    "algorithm.minibatch_size": 16,
    "evaluation.every": 90,
    "evaluation.episodes": 4,
    "checkpoint.every": 60,
    "checkpoint.keep_last": 2,
}
"""A run of twelve batches, five evaluations and eight checkpoints in about a second."""


@dataclass
class Outcome:
    """Result of a run that was killed."""

    kills: Counter[str] = field(default_factory=Counter)
    """Kills by the phase in which the run died."""
    aims: Counter[str] = field(default_factory=Counter)
    """Kills by the phase that was aimed at."""
    attempts: int = 0
    """Number of processes."""


SELF_PLAY = {
    "training.curriculum": [],
    "env.size": [2, 3],
    "algorithm.pool_share": 0.5,
    "algorithm.pool_size": 3,
    "algorithm.snapshot_every": 2,
    "algorithm.gate": 0.9,
    "algorithm.gate_games": 8,
    "evaluation.settings": {"size": 3},
    "evaluation.baselines": ["random"],
}
"""Additional settings of a self-play run: a pool that overflows, and a gate that rejects some snapshots."""


def small_run(
    folder: Path, settings: dict[str, Any] | None = None, *, source: str = "graphwalk-ppo"
) -> RunFolder:
    """Create a run folder for a small run of the recipe `source`."""
    besides = SELF_PLAY if source == "hex-selfplay" else {}
    config = load_config(source, keywords={**SMALL, **besides, **(settings or {})})
    Builder(config).parts()  # imports what children would import otherwise
    return RunFolder.create(folder, config.to_plain())


def train(folder: RunFolder, *, enter: Callable[[str], Any] | None = None) -> None:
    """Start or resume the run in `folder`, calling `enter` with the phase whenever it changes."""
    config = load_config(str(folder.config_file))
    with folder.locked():
        parts = Builder(config).parts()
        if enter is not None:
            _announce(parts.rollout, "collect", "collecting", enter)
            _announce(parts.algorithm, "learn", "updating", enter)
            _announce(checkpoint, "save", "saving", enter)
            _announce(RunEvaluator, "evaluate", "evaluating", enter)
        run = Trainer(config, parts, folder)
        run.restore()
        run.run()


def survive(folder: RunFolder, *, kills: int, seed: int) -> Outcome:
    """Run to the end despite `kills` SIGKILLs at random phases and moments."""
    dice, outcome = random.Random(seed), Outcome()
    while (count := sum(outcome.kills.values())) < kills:
        aim = count % len(PHASES)
        phase = _killed(folder, aim, dice)
        outcome.attempts += 1
        if phase is None:
            _rewind(folder)
        else:
            outcome.kills[phase] += 1
            outcome.aims[PHASES[aim]] += 1
    _finish(folder)
    outcome.attempts += 1
    return outcome


def differences(one: Path, other: Path) -> list[str]:
    """Return the differences of two finished run folders, except times."""
    found = []
    names = {path.name for run in (one, other) for path in (run / "evaluations").iterdir()}
    files = ["metrics.csv", "checkpoints/best.json", *(f"evaluations/{name}" for name in sorted(names))]
    for name in files:
        if _content(one / name) != _content(other / name):
            found.append(name)
    left, right = (checkpoint.latest(run / "checkpoints") for run in (one, other))
    if left.name != right.name:
        found.append(f"{left.name} against {right.name}")
    for name in sorted({path.name for path in (*left.glob("*.safetensors"), *right.glob("*.safetensors"))}):
        if _content(left / name) != _content(right / name):
            found.append(name)
    states = [json.loads((path / "state.json").read_text()) for path in (left, right)]
    found += [
        f"state.json: {part}" for part in states[0] if part != "clock" and states[0][part] != states[1][part]
    ]
    return found


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _rewind(folder: RunFolder) -> None:
    """Delete all but the first checkpoint, so that a finished run can be killed again."""
    for path in checkpoint.saved(folder.checkpoints)[1:]:
        shutil.rmtree(path)


def _killed(folder: RunFolder, aim: int, dice: random.Random) -> str | None:
    """Start an attempt and kill it; return the phase in which it died, or None if it had finished."""
    shared = mmap.mmap(-1, 2)
    child = _fork(folder, shared)
    entries = 0 if PHASES[aim] == "starting" else dice.randint(1, 3)
    delay = dice.choice((0.0, 1.0)) * dice.random() ** 2 * 0.06
    while True:
        if shared[0] == aim and shared[1] >= entries:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            return PHASES[shared[0]] if status == -signal.SIGKILL else _ended(status)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return _ended(os.waitstatus_to_exitcode(status))
        time.sleep(0.0005)


def _finish(folder: RunFolder) -> None:
    """Run to the end in a child without kills."""
    if os.waitstatus_to_exitcode(os.waitpid(_fork(folder, None), 0)[1]) != 0:
        raise RuntimeError(f"the run in {folder.path} failed")


def _ended(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"an attempt ended with {status} before it was killed")


def _fork(folder: RunFolder, shared: mmap.mmap | None) -> int:
    """Fork a child that runs to the end and writes its phase and the phase's count into `shared`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        counts: Counter[str] = Counter()

        def enter(phase: str) -> None:
            counts[phase] += 1
            if shared is not None:
                shared[0], shared[1] = PHASES.index(phase), min(counts[phase], 255)

        train(folder, enter=enter)
        code = 0
    except BaseException:
        logging.getLogger(__name__).exception("an attempt failed")
    finally:
        os._exit(code)


def _announce(owner: Any, name: str, phase: str, enter: Callable[[str], Any]) -> None:
    """Wrap a method so that it announces its phase first."""
    original = getattr(owner, name)

    def announced(*args: Any, **kwargs: Any) -> Any:
        enter(phase)
        return original(*args, **kwargs)

    setattr(owner, name, announced)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="total number of SIGKILLs (100)")
    parser.add_argument("--runs", type=int, default=4, help="number of runs, each with its own seed (4)")
    parser.add_argument(
        "--recipe", default="graphwalk-ppo", choices=["graphwalk-ppo", "hex-selfplay"], help="recipe to run"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the kills (0)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kills: Counter[str] = Counter()
    aims: Counter[str] = Counter()
    attempts, wrong = 0, []
    with tempfile.TemporaryDirectory() as place:
        for index in range(options.runs):
            alone, killed = (
                small_run(Path(place) / f"{name}-{index}", {"seed": index}, source=options.recipe)
                for name in ("alone", "killed")
            )
            _finish(alone)
            share = options.kills // options.runs + (index < options.kills % options.runs)
            outcome = survive(killed, kills=share, seed=options.seed + index)
            kills += outcome.kills
            aims += outcome.aims
            attempts += outcome.attempts
            wrong += [f"run {index}: {name}" for name in differences(alone.path, killed.path)]
    result = {
        "kills": sum(kills.values()),
        "by_phase": dict(kills),
        "aimed_at": dict(aims),
        "processes": attempts,
        "differences": wrong,
    }
    print(json.dumps(result) if options.json else _table(result))
    return 1 if wrong else 0


def _table(result: dict[str, Any]) -> str:
    lines = [f"{phase:12} {result['by_phase'].get(phase, 0):5d} kills" for phase in PHASES]
    lines.append(f"{result['kills']} kills, {result['processes']} processes")
    lines.append(
        "bit for bit as if never killed" if not result["differences"] else "\n".join(result["differences"])
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
