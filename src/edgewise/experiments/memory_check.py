"""Estimates what a run needs before anything large is allocated, and refuses what cannot fit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import nn

from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.config.run import AnyRun
from edgewise.plugins import environment, load
from edgewise.runs.checkpoint import random_state
from edgewise.scale.devices import in_bytes, total_memory

PER_PARAMETER = 4
"""Numbers that training holds for each parameter: its value, its gradient and two moments of Adam."""
BUFFERS = ("replay_size", "buffer_size")
"""Settings of algorithms that keep this many transitions."""


def refuse_too_large(config: AnyRun) -> None:
    """Raise ConfigError if a run surely needs more memory than its device has.

    The estimate is a lower bound: observations of one batch, parameters with gradients and moments, and kept
    transitions. It is measured on one world and on a model without memory.

    Raises:
        ConfigError: with the estimate, the memory there is, and the setting to lower.
    """
    with random_state.untouched():
        env = environment(config.env_name).load("env")(config.env, num_envs=1, seed=0, device=config.device)
        root = env.reset()
        parameters = count_parameters(config, env)
    transition = _transition_bytes(root)
    device, on_disk = config.device, getattr(config.algorithm, "replay_storage", "memory") == "memmap"
    kept, setting = max((getattr(config.algorithm, name, None) or 0, name) for name in BUFFERS)
    buffer = f"algorithm.{setting}: {kept:,} kept transitions"
    needs = {f"the sizes of the model: {parameters:,} parameters": PER_PARAMETER * 4 * parameters}
    frames = config.training.num_envs * config.training.rollout_length
    label = f"training.num_envs x training.rollout_length: a batch of {frames:,} frames"
    needs[label] = frames * _observed_bytes(root)
    if not on_disk:
        needs[buffer] = kept * transition
    _refuse(needs, total_memory(device), device)
    if on_disk:
        place = tempfile.gettempdir()
        disk = os.statvfs(place)
        _refuse({buffer: kept * transition}, disk.f_bavail * disk.f_frsize, f"the disk of {place}")


def refuse_large_model(config: AnyRun, env: Any, *, kept: int | None = None) -> None:
    """Check the shapes of a model before it is built, on a device without memory.

    Args:
        config: of the run.
        env: environment that the model is for.
        kept: numbers in the checkpoint that the model is loaded from; None for a new model.

    Raises:
        CheckpointError: the model has more parameters than the checkpoint has numbers.
        ConfigError: it does not fit into memory.
    """
    parameters = count_parameters(config, env)
    if kept is not None and parameters > kept:
        raise CheckpointError(
            f"the model of config.json has {parameters:,} parameters, but the checkpoint {kept:,} numbers",
            hint="config.json is not the one that this checkpoint was trained with",
        )
    needed = {f"the sizes of the model: {parameters:,} parameters": PER_PARAMETER * parameters}
    _refuse(needed, total_memory(config.device), config.device)


def _refuse(needs: Mapping[str, int], there: int, where: str) -> None:
    if sum(needs.values()) <= there:
        return
    largest = max(needs, key=lambda name: needs[name])
    raise ConfigError(
        f"{largest} would take about {in_bytes(needs[largest])}, and {where} has {in_bytes(there)}",
        hint=f"lower {largest.partition(':')[0]}",
    )


def count_parameters(config: AnyRun, env: Any) -> int:
    """Return the number of parameters of the model; zero if it cannot be built without memory."""
    try:
        with torch.device("meta"):
            model = load(config.model.builder)(env, config)
    except Exception:
        return 0
    return sum(each.numel() for each in model.parameters()) if isinstance(model, nn.Module) else 0


def _observed_bytes(root: TensorDictBase) -> int:
    """Return the bytes of the observation of one world, which a batch has once for each frame."""
    return _bytes(root.exclude("state", "done", "terminated", "truncated"))


def _transition_bytes(root: TensorDictBase) -> int:
    """Return the least bytes of a kept transition: what one agent observes, or the whole graph."""
    ego = root.get(("agents", "ego"), None)
    if ego is None:
        return _bytes(root.get("graph"))
    return _bytes(ego) // max(1, root["agents", "active"].shape[-1])


def _bytes(entries: TensorDictBase) -> int:
    leaves = entries.values(include_nested=True, leaves_only=True)
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves)
