"""Check that all numbers of a run are finite; otherwise stop in the same iteration and save the batch."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.config.errors import ConfigError, NumericalStop
from edgewise.data.instance_batch import graphs_of
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.ragged import padded
from edgewise.runs import durable
from edgewise.runs.checkpoint import tensor_file

UNCHECKED = ("state", "metrics")
"""Entries that may hold infinities: the simulator's state, and episode metrics that are not defined yet."""

MASKS = {"x": "node_mask", "pos": "node_mask", "edge_attr": "edge_mask"}
"""Entries of a graph whose padding may hold any value, and the mask that is false there."""


def finite(batch: TensorDictBase) -> dict[str, Tensor]:
    """Return whether each floating-point entry of a batch is finite, 0-d bool, by name such as `next.reward`.

    Padding of graphs is not checked.
    """
    found = {}
    for path, node in _checked(batch, ()):
        for name, value in node.items():
            if isinstance(value, Tensor) and value.is_floating_point():
                mask = node.get(MASKS[name], None) if GRAPH in path and name in MASKS else None
                is_finite = value.isfinite()
                if mask is not None:
                    is_finite = is_finite | ~mask.unsqueeze(-1)
                found[".".join((*path, name))] = is_finite.all()
    return found


def diagnostics(policy: object, batch: TensorDictBase) -> dict[str, Tensor]:
    """Compute diagnostics of a policy, 0-d each: those of its modules, gradient norms and the weight norm.

    The method `diagnostics(graph)` of every module that has one is called with the last step of the batch, or
    with its instances, as the policy encodes them.
    Gradient norms are those of the last minibatch, one per layer.
    """
    if not isinstance(policy, nn.Module):
        return {}
    found: dict[str, Tensor] = {}
    graph = graphs_of(batch, policy)
    for name, module in policy.named_modules():
        if hasattr(module, "diagnostics") and graph is not None:
            values = module.diagnostics(graph)
            found |= {f"{name}/{key}".strip("/"): value for key, value in values.items()}
    layers: dict[str, list[Tensor]] = {}
    for name, parameter in policy.named_parameters():
        if parameter.grad is not None:
            layers.setdefault(_layer(name), []).append(parameter.grad)
    found |= {f"{name}/gradient_norm": nn.utils.get_total_norm(grads) for name, grads in layers.items()}
    weights = [parameter.detach() for parameter in policy.parameters()]
    return found | ({"weight_norm": nn.utils.get_total_norm(weights)} if weights else {})


def to_host(values: Mapping[str, Tensor]) -> dict[str, float]:
    """Return 0-d tensors as numbers, with a single synchronisation with the device."""
    if not values:
        return {}
    stacked = torch.stack([value.detach().double().reshape(()) for value in _on_one_device(values)])
    return dict(zip(values, stacked.tolist(), strict=True))


def check_edge_slots(numbers: Mapping[str, float], *, frames: int) -> None:
    """Raise ConfigError if an encoder reports graphs with more edges than slots.

    Args:
        numbers: diagnostics by name.
        frames: frames of the run before this batch.
    """
    if any(value > 0 for name, value in numbers.items() if name.endswith("edges/overflow")):
        raise ConfigError(
            f"in the batch after {frames} frames a graph has more edges than the declared `max_edges`, "
            "so the policy did not see all of them",
            hint="raise max_edges of the environment's edge rule",
        )


def causes(batch: TensorDictBase) -> list[str]:
    """Return the names of entries of a batch or an observation that are not finite."""
    return [name for name, is_finite in to_host(finite(batch)).items() if not is_finite]


def observation_of(error: BaseException) -> TensorDictBase | None:
    """Return the observation that the functions in the traceback of an error worked on.

    It is the innermost variable that is a TensorDict with a graph; one with numbers that are not finite is
    preferred.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    held = [value for frame in reversed(frames) for value in frame.f_locals.values()]
    found = [value for value in held if isinstance(value, TensorDictBase) and GRAPH in value]
    return next(filter(causes, found), next(iter(found), None))


def raise_for(observation: TensorDictBase, error: Exception) -> NoReturn:  # noqa: ARG001 - found in the traceback
    """Raise an error whose `observation_of` is `observation`."""
    raise error


def numerical_stop(
    folder: Path,
    batch: TensorDictBase,
    *,
    causes: list[str],
    frames: int,
    last_checkpoint: Path | None,
    rank: int = 0,
) -> NumericalStop:
    """Save the batch in the run folder, and return the error that ends the run.

    Args:
        folder: of the run.
        batch: the batch to save.
        causes: names of entries that are not finite.
        frames: frames of the run before this batch.
        last_checkpoint: the newest checkpoint, named in the message.
        rank: of this process; each saves a file of its own.
    """
    path = folder / f"nonfinite-{frames:012d}{f'-rank{rank}' if rank else ''}.safetensors"
    tensors = {
        name if isinstance(name, str) else ".".join(name): value
        for name, value in padded(batch).items(include_nested=True, leaves_only=True)
        if isinstance(value, Tensor) and value.dtype in tensor_file.DTYPES
    }
    path.unlink(missing_ok=True)
    tensor_file.write(path, tensors)
    durable.replace_whole(
        path.with_suffix(".json"), json.dumps({"frames": frames, "causes": causes}).encode()
    )
    listed = ", ".join(causes[:5]) + (f" and {len(causes) - 5} more" if len(causes) > 5 else "")
    saved = "there is no checkpoint yet"
    if last_checkpoint is not None:
        saved = f"the last good checkpoint is {last_checkpoint}"
    given = [name for name in causes if _is_given(name)]
    if given:
        return NumericalStop(
            f"the environment gives what is not finite in the batch after {frames} frames: {listed}; {saved}",
            hint=f"the batch is saved in {path}; mend `advance` or `observe` (`edgewise envs check`)",
        )
    return NumericalStop(
        f"not finite in the batch after {frames} frames: {listed}; {saved}",
        hint=f"the batch is saved in {path}; a lower learning rate or gradient norm usually helps",
    )


def _is_given(cause: str) -> bool:
    """Return whether an entry comes from the environment: a reward or an observation."""
    return cause.removeprefix("next.").split(".")[0] in ("reward", GRAPH, "agents", "action_prior", "step")


def _checked(
    tensordict: TensorDictBase, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], TensorDictBase]]:
    """Yield every nested TensorDict that is checked, with its path."""
    yield path, tensordict
    for name, value in tensordict.items():
        if isinstance(value, TensorDictBase) and name not in UNCHECKED:
            yield from _checked(value, (*path, name))


def _layer(parameter: str) -> str:
    """Return the layer of a parameter: its path up to the first number, or its first two names."""
    found = re.match(r"(.*?\.\d+)\.", parameter)
    return found[1] if found else ".".join(parameter.split(".")[:-1][:2]) or parameter


def _on_one_device(values: Mapping[str, Tensor]) -> list[Tensor]:
    devices = {value.device for value in values.values()}
    if len(devices) == 1:
        return list(values.values())
    target = next(device for device in devices if device.type != "cpu")
    return [value.to(target, non_blocking=True) for value in values.values()]
