"""Compare runs with baselines and with other runs on the same instances, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.evaluation.instances import Instances
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.evaluate import evaluate_baselines, load_on_instances, parts_of
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder

Pair = tuple[Evaluation, Evaluation]


def compare_runs(runs: Sequence[Path], others: Sequence[str], request: EvaluationRequest) -> list[Pair]:
    """Evaluate runs and each of `others` on the instances of the first run.

    Args:
        runs: run folders.
        others: run folders, or names of baselines.
        request: instances and checkpoint; the seed is that of the first run's evaluation if not given.

    Returns:
        Every run with every other one; a pair for each stage of the evaluation.

    Raises:
        ConfigError: an environment has other instances than that of the first run.
    """
    if request.seed is None:
        request = replace(request, seed=load_config(RunFolder(runs[0]).config_file).evaluation.seed)
    first: Instances | None = None
    evaluated: dict[str, list[Evaluation]] = {}
    folders = [str(run) for run in runs] + [other for other in others if _is_run(other)]
    for folder in dict.fromkeys(folders):
        trained, instances = load_on_instances(Path(folder), request)
        if first is None:
            first = instances
        else:
            _check_same(first, instances, folder)
        result = replace(instances(trained.policy), policy=Path(folder).resolve().name, frames=trained.frames)
        evaluated[folder] = parts_of(result, instances)
    assert first is not None
    baselines = [other for other in others if not _is_run(other)]
    for name, result in zip(baselines, evaluate_baselines(first, baselines), strict=True):
        evaluated[name] = parts_of(result, first)
    return [
        pair
        for run in runs
        for other in others
        for pair in zip(evaluated[str(run)], evaluated[other], strict=True)
    ]


def _is_run(name: str) -> bool:
    return (Path(name) / "config.json").is_file()


def _check_same(first: Instances, other: Instances, folder: str) -> None:
    """Raise ConfigError unless both have the same initial states, in the entries that both have."""
    ours, theirs = _initial_state(first), _initial_state(other)
    keys = [key for key in ours.keys(include_nested=True, leaves_only=True) if key in theirs.keys(True)]
    if all(ours[key].shape == theirs[key].shape and torch.equal(ours[key], theirs[key]) for key in keys):
        return
    left, right = first.env.config.to_plain(), other.env.config.to_plain()
    differing = [name for name in left if name in right and left[name] != right[name]]
    raise ConfigError(
        f"{folder} does not have the instances of the first run: {', '.join(differing)} differ",
        hint="give the settings that decide the instances, such as its size",
    )


def _initial_state(instances: Instances) -> TensorDictBase:
    if instances.start is not None:
        return instances.start
    instances.env.set_seed(instances.seed)
    state: TensorDictBase = instances.env.reset()["state"]
    return state
