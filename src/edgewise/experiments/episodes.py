"""Recorded episodes of a run: those in its folder, or one that its policy plays now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgewise.config.errors import ConfigError
from edgewise.evaluation.replays import files as replays
from edgewise.evaluation.request import EvaluationRequest
from edgewise.experiments.evaluate import load_on_instances
from edgewise.experiments.replays import replay_function
from edgewise.runs.folder import RunFolder


def recorded_episode(run: Path, number: int = 0) -> dict[str, Any] | None:
    """Return an episode of the newest evaluation that a run has recorded; None if it has recorded none.

    Raises:
        ConfigError: there are fewer episodes.
        DataError: the file is damaged.
    """
    every = sorted(RunFolder(run).replays.glob("*.json"))
    if not every:
        return None
    newest = [path for path in every if path.stem.partition("-")[0] == every[-1].stem.partition("-")[0]]
    if not 0 <= number < len(newest):
        raise ConfigError(
            f"episode: got {number}, but the newest evaluation of {run} recorded {len(newest)}",
            hint=f"use 0 to {len(newest) - 1}",
        )
    return replays.load(newest[number])


def play_episode(run: Path, request: EvaluationRequest) -> dict[str, Any]:
    """Return an episode that the policy of a run plays now, the most instructive of the instances."""
    trained, instances = load_on_instances(run, request)
    entry = instances.entry
    found = instances(trained.policy, record=1)
    draw = replay_function(trained.policy, instances.env, entry=entry)
    (states, *_), (steps, *_) = found.recordings, found.recorded_steps
    return replays.check(draw(states, steps))
