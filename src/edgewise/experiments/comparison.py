"""Compare runs with baselines and with other runs on the same instances, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.evaluation.instances import Instances
from edgewise.evaluation.result import Evaluation
from edgewise.experiments.evaluate import load_on_instances, measure_baselines, parts_of
from edgewise.experiments.load import load_config
from edgewise.runs.folder import RunFolder

Pair = tuple[Evaluation, Evaluation]


def measure_against(
    runs: Sequence[Path],
    others: Sequence[str],
    *,
    settings: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    seed: int | None = None,
    which: str = "best",
    deterministic: bool = True,
    device: str | None = None,
) -> list[Pair]:
    """Evaluate runs and each of `others` on the instances of the first run.

    Args:
        runs: run folders.
        others: run folders, or names of baselines.
        settings: fields of the environment's config that differ from each run's own evaluation.
        episodes: number of instances; as in the first run's own evaluation if not given.
        seed: of the instances; as in the first run's own evaluation if not given.
        which: `best` or `latest` checkpoint.
        deterministic: whether policies act by their mode.
        device: on which to evaluate.

    Returns:
        Every run with every other one; a pair for each stage of the evaluation.

    Raises:
        ConfigError: an environment has other instances than that of the first run.
    """
    seed = load_config(RunFolder(runs[0]).config_file).evaluation.seed if seed is None else seed
    first: Instances | None = None
    evaluated: dict[str, list[Evaluation]] = {}
    folders = [str(run) for run in runs] + [other for other in others if _is_run(other)]
    for folder in dict.fromkeys(folders):
        trained, instances = load_on_instances(
            Path(folder), settings=settings, episodes=episodes, seed=seed, which=which, device=device
        )
        if first is None:
            first = instances
        else:
            _check_same(first, instances, folder)
        result = replace(instances, deterministic=deterministic)(trained.policy)
        result = replace(result, policy=Path(folder).resolve().name, frames=trained.frames)
        evaluated[folder] = parts_of(result, instances)
    assert first is not None
    baselines = [other for other in others if not _is_run(other)]
    for name, result in zip(baselines, measure_baselines(first, baselines), strict=True):
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
