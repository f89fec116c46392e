"""Kill a run repeatedly at random moments and check that it ends bit for bit like an uninterrupted one.

    python -m benchmarks.kill_resume --kills 100
    python -m benchmarks.kill_resume --kills 100 --processes 2

A parent process imports everything once and forks a child for every attempt, so a kill costs no import. The
child writes its phase into shared memory; the parent waits for a chosen phase and a random time, then sends
SIGKILL. With several processes, one of them is killed, or all at once; the others must end by themselves. The
tests also cover separate processes that are started from the command line.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from edgewise.config.errors import ProcessLost
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder
from edgewise.scale.processes.group import this_group
from edgewise.scale.processes.ranks import RENDEZVOUS
from edgewise.training.run_evaluator import RunEvaluator
from edgewise.training.trainer import Trainer

LONGEST_WAIT = 120
"""Seconds within which the other processes of a run must notice that one was killed."""
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
UNUSED = "unused"
EXPERT_ITERATION = {
    "env.size": 3,
    "algorithm.epochs": UNUSED,
    "algorithm.simulations": 3,
    "algorithm.updates": 2,
    "algorithm.buffer_size": 64,
    "algorithm.reanalysis": 0.5,
    "evaluation.settings": {"size": 3},
    "evaluation.baselines": ["random"],
}
"""Additional settings of expert iteration: a buffer that overflows, and some reanalysis."""


OFF_POLICY = {
    "algorithm.epochs": UNUSED,
    "model.encoder.hidden": UNUSED,
    "model.encoder.layers": UNUSED,
    "model.encoder.heads": UNUSED,
    "model.hidden": 16,
    "algorithm.learning_starts": 32,
    "algorithm.replay_size": 256,
    "env.max_steps": 12,
    "training.curriculum": [
        {"name": "three", "env": {"num_robots": 3}, "until": {"frames": 128}},
        {"name": "four", "env": {"num_robots": 4}},
    ],
    "training.schedules": {
        "learning_rate": {"kind": "linear", "start": 1e-3},
        "epsilon": {"kind": "linear", "start": 0.6, "end": 0.1},
    },
    "evaluation.settings": {},
    "evaluation.stages": [],
}
"""Additional settings of an off-policy run: a replay buffer that overflows, and two stages."""
RECIPES: dict[str, dict[str, Any]] = {
    "graphwalk-ppo": {
        "training.curriculum": [
            {"name": "small", "env": {"num_nodes": [4, 6]}, "until": {"frames": 128}},
            {"name": "all", "env": {}},
        ],
        "env.num_nodes": [4, 9],
    },
    "hex-selfplay": {
        **SELF_PLAY,
        "training.curriculum": [
            {"name": "small", "env": {"size": 2}, "until": {"frames": 128}},
            {"name": "all", "env": {}},
        ],
    },
    "hex-expert": EXPERT_ITERATION,
    "marine-dqn": OFF_POLICY,
    "marine-rainbow": {
        **OFF_POLICY,
        "training.schedules": {"beta": {"kind": "linear", "start": 0.4, "end": 1.0}},
    },
    "swarm-mappo": {
        "training.curriculum": [
            {"name": "one", "env": {"num_agents": 1}, "until": {"frames": 128}},
            {"name": "three", "env": {}},
        ]
    },
    "queueing-line3-clone": {
        "algorithm.epochs": UNUSED,
        "algorithm.updates": 4,
        "training.curriculum": [
            {"name": "light", "env": {"initial_queue": 1}, "until": {"frames": 128}},
            {"name": "all", "env": {}},
        ],
        "training.schedules": {"expert_share": {"kind": "linear", "start": 1.0, "end": 0.0}},
    },
}
"""Runs that are killed, with what each adds to `SMALL`: a curriculum, schedules, a gate, a replay buffer."""


def small_run(
    folder: Path, settings: dict[str, Any] | None = None, *, source: str = "graphwalk-ppo"
) -> RunFolder:
    """Create a run folder for a small run of the recipe `source`."""
    besides = {"hex-selfplay": SELF_PLAY, "hex-expert": EXPERT_ITERATION}.get(source, {})
    return _created(folder, source, {**SMALL, **besides, **(settings or {})})


def killed_run(folder: Path, source: str, *, seed: int, processes: int = 1) -> RunFolder:
    """Create a run folder for a small run with everything on that a resumed run must restore."""
    return _created(folder, source, {**SMALL, **RECIPES[source], "seed": seed, "processes": processes})


def _created(folder: Path, source: str, chosen: dict[str, Any]) -> RunFolder:
    config = load_config(source, keywords={name: value for name, value in chosen.items() if value != UNUSED})
    Builder(config).parts()  # imports what children would import otherwise
    return RunFolder.create(folder, config.to_plain())


def train(folder: RunFolder, *, enter: Callable[[str], Any] | None = None) -> None:
    """Start or resume the run in `folder`, calling `enter` with the phase whenever it changes."""
    config = load_config(str(folder.config_file))
    group = this_group()
    with folder.locked() if group.first else nullcontext():
        parts = Builder(config, group=group).parts()
        if enter is not None:
            _announce(parts.rollout, "collect", "collecting", enter)
            _announce(parts.algorithm, "learn", "updating", enter)
            _announce(checkpoint, "save", "saving", enter)
            _announce(RunEvaluator, "evaluate", "evaluating", enter)
        run = Trainer(config, parts, folder, group=group)
        run.restore()
        run.run()


def survive(folder: RunFolder, *, kills: int, seed: int, processes: int = 1) -> Outcome:
    """Run to the end despite `kills` SIGKILLs at random phases and moments."""
    dice, outcome = random.Random(seed), Outcome()
    while (count := sum(outcome.kills.values())) < kills:
        aim = count % len(PHASES)
        phase = _killed(folder, aim, dice, processes)
        outcome.attempts += 1
        if phase is None:
            _rewind(folder)
        else:
            outcome.kills[phase] += 1
            outcome.aims[PHASES[aim]] += 1
    _finish(folder, processes)
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


def _killed(folder: RunFolder, aim: int, dice: random.Random, processes: int) -> str | None:
    """Start an attempt and kill it; return the phase in which it died, or None if it had finished."""
    shared = [mmap.mmap(-1, 2) for _ in range(processes)]
    children = _fork_all(folder, shared)
    entries = 0 if PHASES[aim] == "starting" else dice.randint(1, 3)
    delay = dice.choice((0.0, 1.0)) * dice.random() ** 2 * 0.06
    # Rank 0 alone evaluates, so it is the one to be killed there. Half of the other times all are killed.
    victim = 0 if PHASES[aim] == "evaluating" else dice.randrange(processes)
    victims = children if dice.random() < 0.5 else [children[victim]]
    while True:
        if shared[victim][0] == aim and shared[victim][1] >= entries:
            time.sleep(delay)
            for child in victims:
                os.kill(child, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(children[victim], 0)[1])
            others = [child for child in children if child != children[victim]]
            if PHASES[aim] == "starting":
                _kill(others)
            _reap(others)
            return PHASES[shared[victim][0]] if status == -signal.SIGKILL else _ended(status)
        done, status = os.waitpid(children[victim], os.WNOHANG)
        if done:
            _reap([child for child in children if child != children[victim]])
            return _ended(os.waitstatus_to_exitcode(status))
        time.sleep(0.0005)


def _kill(children: list[int]) -> None:
    """Kill processes that wait for one that never came to meet them, as the command that starts them does."""
    for child in children:
        os.kill(child, signal.SIGKILL)


def _reap(children: list[int]) -> None:
    """Wait for the other processes of an attempt, which must end because one was killed."""
    deadline = time.monotonic() + LONGEST_WAIT
    for child in children:
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                raise RuntimeError(f"a process went on for {LONGEST_WAIT} s after another one was killed")
            time.sleep(0.001)


def _finish(folder: RunFolder, processes: int = 1) -> None:
    """Run to the end in children without kills."""
    children = _fork_all(folder, [None] * processes)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise RuntimeError(f"the run in {folder.path} failed")


def _ended(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"an attempt ended with {status} before it was killed")


def _fork_all(folder: RunFolder, shared: Sequence[mmap.mmap | None]) -> list[int]:
    """Fork the processes of an attempt; several of them meet at a file of their own."""
    if len(shared) == 1:
        return [_fork(folder, shared[0], {})]
    meeting = Path(tempfile.mkdtemp(prefix="meeting-", dir=folder.path.parent)) / "file"
    places = {"WORLD_SIZE": str(len(shared)), "GLOO_SOCKET_IFNAME": "lo", RENDEZVOUS: f"file://{meeting}"}
    return [_fork(folder, each, {**places, "RANK": str(rank)}) for rank, each in enumerate(shared)]


def _fork(folder: RunFolder, shared: mmap.mmap | None, place: Mapping[str, str]) -> int:
    """Fork a child that runs to the end and writes its phase and the phase's count into `shared`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.environ.update(place)
        counts: Counter[str] = Counter()

        def enter(phase: str) -> None:
            counts[phase] += 1
            if shared is not None:
                shared[0], shared[1] = PHASES.index(phase), min(counts[phase], 255)

        train(folder, enter=enter)
        code = 0
    except ProcessLost as error:
        code = error.exit_code
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
        "--recipe", default="graphwalk-ppo", choices=[*RECIPES, "all"], help="recipe to run, or all of them"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed of the kills (0)")
    parser.add_argument("--processes", type=int, default=1, help="processes of each run (1)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = list(RECIPES) if options.recipe == "all" else [options.recipe]
    shares = _shares(options.kills, len(chosen))
    results = [_attack(recipe, options, share) for recipe, share in zip(chosen, shares, strict=True)]
    print(json.dumps(_total(results)) if options.json else "\n".join(map(_table, results)))
    return int(any(result["differences"] for result in results))


def _attack(recipe: str, options: argparse.Namespace, kills: int) -> dict[str, Any]:
    """Kill runs of one recipe, and compare them with runs that were left alone."""
    died: Counter[str] = Counter()
    aims: Counter[str] = Counter()
    attempts, wrong = 0, []
    with tempfile.TemporaryDirectory() as place:
        for index, share in enumerate(_shares(kills, options.runs)):
            alone, killed = (
                killed_run(Path(place) / f"{name}-{index}", recipe, seed=index, processes=options.processes)
                for name in ("alone", "killed")
            )
            _finish(alone, options.processes)
            outcome = survive(killed, kills=share, seed=options.seed + index, processes=options.processes)
            died += outcome.kills
            aims += outcome.aims
            attempts += outcome.attempts
            wrong += [f"{recipe}, run {index}: {name}" for name in differences(alone.path, killed.path)]
    return {
        "recipe": recipe,
        "kills": sum(died.values()),
        "by_phase": dict(died),
        "aimed_at": dict(aims),
        "processes": attempts,
        "differences": wrong,
    }


def _shares(total: int, parts: int) -> list[int]:
    """Split a number into nearly equal parts."""
    return [total // parts + (index < total % parts) for index in range(parts)]


def _total(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum the results of all recipes."""
    sums = {name: sum(result[name] for result in results) for name in ("kills", "processes")}
    counted = {name: Counter[str]() for name in ("by_phase", "aimed_at")}
    for result in results:
        for name, counter in counted.items():
            counter.update(result[name])
    wrong = [each for result in results for each in result["differences"]]
    return {**sums, **{name: dict(counter) for name, counter in counted.items()}, "differences": wrong}


def _table(result: dict[str, Any]) -> str:
    phases = ", ".join(f"{result['by_phase'].get(phase, 0)} {phase}" for phase in PHASES)
    verdict = (
        "bit for bit as if never killed" if not result["differences"] else "\n".join(result["differences"])
    )
    counts = f"{result['kills']:4d} kills ({phases}), {result['processes']} processes"
    return f"{result['recipe']:22} {counts}: {verdict}"


if __name__ == "__main__":
    sys.exit(main())
