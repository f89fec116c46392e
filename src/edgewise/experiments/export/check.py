"""Compare a written program with the policy, on observations of its environment and on sizes not traced."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.envs import ExplorationType

from edgewise.config.errors import ConfigError
from edgewise.data.rollout import acting, reset_hidden_state
from edgewise.experiments.export.program import first_line, load
from edgewise.models.distributions.masked import without_mask_checks
from edgewise.models.policy_function import PolicyFunction, Tensors

TOLERANCE = 1e-5
"""Largest difference between a program and its policy."""
WORLDS, STEPS = 3, 4
"""Observations of the environment on which programs are compared: worlds, and steps of each."""

Arrays = dict[str, "numpy.ndarray[Any, Any]"]


@dataclass(frozen=True)
class Tried:
    """A comparison on inputs of some sizes.

    Attributes:
        sizes: of the named dimensions.
        difference: the largest difference of any output to that of the policy, relative to numbers above 1.
    """

    sizes: Mapping[str, int]
    difference: float


@dataclass(frozen=True)
class Checked:
    """How a program differs from its policy.

    Attributes:
        tried: random inputs of sizes that were not traced, then observations of the environment.
        actions: number of actions compared in the environment.
        differing_actions: how many of them are not those of the policy, other than ties.
    """

    tried: tuple[Tried, ...]
    actions: int
    differing_actions: int

    @property
    def largest_difference(self) -> float:
        """The largest difference of any output."""
        return max(each.difference for each in self.tried)

    @property
    def passed(self) -> bool:
        """Whether program and policy agree."""
        return self.largest_difference <= TOLERANCE and not self.differing_actions


@dataclass(frozen=True)
class Latency:
    """Microseconds of CPU time per decision in one world, the median over calls: of policy and program."""

    eager: float
    program: float


def traced_sizes(function: PolicyFunction) -> dict[str, int]:
    """Return the sizes of the policy's own environment, of which none is 1, to trace a function with."""
    return function.fit({name: max(2, size) for name, size in function.sizes.items()})


def other_sizes(function: PolicyFunction) -> list[dict[str, int]]:
    """Return sizes that are smaller, and larger, than those a function is traced with."""
    traced = traced_sizes(function)
    smaller = {
        name: 1 if number == 0 else max(1, size // 2) for number, (name, size) in enumerate(traced.items())
    }
    larger = {name: 2 * size + 1 for name, size in traced.items()}
    return [function.fit(smaller), function.fit(larger)]


def check(function: PolicyFunction, roots: list[TensorDictBase], path: Path) -> Checked:
    """Compare the program in a file with the policy.

    Args:
        function: the policy as a function.
        roots: observations with the actions of the policy, see `observations`.
        path: the program.
    """
    program, generator = load(path, list(function.outputs)), torch.Generator().manual_seed(1)
    numpy_in = path.suffix == ".onnx"
    tried = []
    with torch.no_grad(), without_mask_checks():
        for sizes in other_sizes(function):
            inputs = function.sample(sizes, generator)
            tried.append(
                Tried(sizes, _difference(function(inputs), call(program, inputs, numpy_in=numpy_in)))
            )
    compared = differing = 0
    for root in roots:
        inputs = function.inputs_of(root)
        with torch.no_grad():
            own, found = function(inputs), call(program, inputs, numpy_in=numpy_in)
        tried.append(Tried(sizes_of(function, inputs), _difference(own, found)))
        action = decoded(function, inputs, found)
        compared += action.numel()
        differing += _count_differing(action, function.actions_of(root), own)
    return Checked(tuple(tried), compared, differing)


def check_parts(
    function: PolicyFunction,
    parts: Mapping[str, PolicyFunction],
    roots: list[TensorDictBase],
    paths: Mapping[str, Path],
) -> tuple[Tried, ...]:
    """Compare programs that follow each other with the function that they make up together.

    Args:
        function: the policy as a function.
        parts: of it, see `PolicyFunction.parts`.
        roots: observations of the environment.
        paths: of the programs.
    """
    programs = {name: load(paths[name], list(part.outputs)) for name, part in parts.items()}
    generator, tried = torch.Generator().manual_seed(2), []
    given = [function.sample(sizes, generator) for sizes in other_sizes(function)]
    for inputs in (*given, *map(function.inputs_of, roots)):
        known = dict(inputs)
        for name, part in parts.items():
            asked = {info.name: known[info.name] for info in part.inputs}
            known |= call(programs[name], asked, numpy_in=paths[name].suffix == ".onnx")
        with torch.no_grad(), without_mask_checks():
            own = function(inputs)
        found = {name: known[name] for name in own}
        tried.append(Tried(sizes_of(function, inputs), _difference(own, found)))
    return tuple(tried)


def observations(policy: Any, env: Any) -> list[TensorDictBase]:
    """Return roots of `env` along an episode of the policy, with the `action` that it chose."""
    found = []
    with acting(policy, mode=ExplorationType.DETERMINISTIC):
        root = env.reset()
        for _ in range(STEPS):
            root = policy(root)
            found.append(root.clone())
            step, root = env.step_and_maybe_reset(root)
            reset_hidden_state(root, step["next", "done"])
    return found


def call(program: Callable[..., dict[str, Any]], inputs: Tensors, *, numpy_in: bool) -> Tensors:
    """Call a loaded program with tensors.

    Raises:
        ConfigError: the program does not take these inputs.
    """
    try:
        found = program(as_arrays(inputs) if numpy_in else inputs)
    except Exception as error:
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in inputs.items())
        raise ConfigError(
            f"the program fails on {shapes}: {first_line(error)}",
            hint="a module of the policy gives other operations for other sizes, which cannot be exported",
        ) from error
    return {name: torch.from_numpy(value) for name, value in found.items()} if numpy_in else found


def as_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """Return tensors as numpy arrays."""
    return {name: value.detach().cpu().numpy() for name, value in tensors.items()}


def decoded(function: PolicyFunction, inputs: Tensors, outputs: Tensors) -> Tensor:
    """Return the actions that follow from outputs, as a user of the program decodes them."""
    if function.decode is None:
        return outputs["action"]
    return torch.from_numpy(function.decode(as_arrays(inputs), as_arrays(outputs)))


def sizes_of(function: PolicyFunction, inputs: Tensors) -> dict[str, int]:
    """Return the sizes of the named dimensions of inputs."""
    return {
        name: size
        for info in function.inputs
        for name, size in zip(info.shape, inputs[info.name].shape, strict=True)
        if isinstance(name, str)
    }


def measure(
    function: PolicyFunction, policy: Any, root: TensorDictBase, path: Path, *, calls: int = 30
) -> Latency:
    """Measure the time of a decision in one world, of the policy and of the program in a file.

    Args:
        function: the policy as a function.
        policy: the policy itself.
        root: an observation of one world.
        path: the program.
        calls: of each, in turn.
    """
    program = load(path, list(function.outputs))
    with acting(policy, mode=ExplorationType.DETERMINISTIC):
        inputs: Any = function.inputs_of(root)
        inputs = as_arrays(inputs) if path.suffix == ".onnx" else inputs
        eager, exported = [], []
        for _ in range(calls):
            eager.append(_seconds(lambda: policy(root.copy())))
            exported.append(_seconds(lambda: program(inputs)))
    return Latency(_median_us(eager), _median_us(exported))


def _seconds(work: Callable[[], Any]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _median_us(seconds: list[float]) -> float:
    return 1e6 * sorted(seconds)[len(seconds) // 2]


def _difference(own: Tensors, found: Tensors) -> float:
    """Return the largest difference of any output but whole numbers, relative to numbers above 1."""
    largest = 0.0
    for name, value in own.items():
        other = found[name]
        if value.shape != other.shape or value.dtype != other.dtype:
            return float("inf")
        if value.is_floating_point() and value.numel():
            gap = (value.double() - other.double()).abs() / value.double().abs().clamp(min=1.0)
            gap = gap.masked_fill(value == other, 0.0)
            largest = max(largest, float(gap.nan_to_num(nan=float("inf")).max()))
    return largest


def _count_differing(action: Tensor, own: Tensor, outputs: Tensors) -> int:
    """Count actions that are not those of the policy; one that is equally good, also as a set, is."""
    if action.shape != own.shape:
        return max(action.numel(), own.numel())
    if action.is_floating_point():
        return int(((action - own).abs() > TOLERANCE).sum())
    different = action != own
    ranked = outputs.get("scores", outputs.get("logits"))
    if not different.any() or ranked is None:
        return int(different.sum())
    if ranked.shape == own.shape and own.dtype == torch.bool:
        weight = ranked.masked_fill(~(own | action), 0.0)
        gap = (weight * own).sum(-1, keepdim=True) - (weight * action).sum(-1, keepdim=True)
        return int((different & (gap.abs() > TOLERANCE)).sum())
    if ranked.dim() != own.dim() + 1:
        return int(different.sum())
    gap = ranked.gather(-1, own.unsqueeze(-1)) - ranked.gather(-1, action.unsqueeze(-1))
    return int((different & (gap.squeeze(-1).abs() > TOLERANCE)).sum())
