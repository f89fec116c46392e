"""Estimates what a run needs before anything large is allocated, and refuses what cannot fit."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.utils._python_dispatch import TorchDispatchMode

from edgewise.config.errors import CheckpointError, ConfigError
from edgewise.config.run import AnyRun
from edgewise.plugins import environment, load
from edgewise.runs.checkpoint import random_state
from edgewise.scale.devices import in_bytes, total_memory

_ATEN = torch.ops.aten
ALLOCATING = {
    *(_ATEN.empty, _ATEN.empty_strided, _ATEN.zeros, _ATEN.ones, _ATEN.full, _ATEN.rand, _ATEN.randn),
}
"""Operations that allocate a tensor of a given size."""
META = torch.device("meta")
SMALL = 2**24
"""Numbers that may be allocated at once whatever a checkpoint has: models also build tables."""
PER_PARAMETER = 4
"""Numbers that training holds for each parameter: its value, its gradient and two moments of Adam."""
COPIES = 4
"""Networks of a new algorithm for one in a checkpoint: a packed run has no target networks."""
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


@contextmanager
def limited(config: AnyRun, *, kept: int | None = None) -> Iterator[None]:
    """Refuse what is built inside as soon as its parameters are too many, before the next is allocated.

    Args:
        config: of the run.
        kept: numbers in the checkpoint that the model is loaded from; None for a new model.

    Raises:
        CheckpointError: the model has far more parameters than the checkpoint has numbers.
        ConfigError: it does not fit into memory.
    """
    found = 0

    def refuse(numbers: int, *, at_least: int = 0) -> None:
        if kept is not None and numbers > max(COPIES * kept, at_least):
            raise CheckpointError(
                f"the model of config.json has {numbers:,} or more parameters, but the checkpoint {kept:,} "
                "numbers",
                hint="config.json is not the one that this checkpoint was trained with",
            )
        needed = {f"the sizes of the model: {numbers:,} or more parameters": 4 * PER_PARAMETER * numbers}
        _refuse(needed, total_memory(config.device), config.device)

    def count(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> None:
        nonlocal found
        found += 0 if parameter is None else parameter.numel()
        refuse(found)

    counted = register_module_parameter_registration_hook(count)
    try:
        with _Watched(lambda numbers: refuse(found + numbers, at_least=SMALL)):
            yield
    finally:
        counted.remove()


class _Watched(TorchDispatchMode):
    """Calls a function with the size of every tensor that is about to be allocated."""

    def __init__(self, check: Callable[[int], None]) -> None:
        super().__init__()
        self._check = check

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function.overloadpacket in ALLOCATING and (kwargs or {}).get("device") != META:
            self._check(math.prod(args[0]))
        return function(*args, **(kwargs or {}))


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
