"""Watches a run's numbers: what is not finite stops it in the same iteration, and the batch is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.config.errors import NumericalStop
from edgewise.graphs.keys import GRAPH
from edgewise.training import durable
from edgewise.training.checkpoint import tensor_file

UNWATCHED = ("state", "metrics")
"""Entries that may hold infinities by right: the simulator's own state, and episode metrics yet undefined."""

MASKS = {"x": "node_mask", "pos": "node_mask", "edge_attr": "edge_mask"}
"""Entries of a graph that hold anything where the mask is false."""


def finite(batch: TensorDictBase) -> dict[str, Tensor]:
    """Whether each floating entry of a batch is finite, 0-d bool each, by its name such as `next.reward`.

    Padding of graphs is left out, since it may hold anything.
    """
    found = {}
    for path, owner in _owners(batch, ()):
        for name, value in owner.items():
            if isinstance(value, Tensor) and value.is_floating_point():
                mask = owner.get(MASKS[name], None) if GRAPH in path and name in MASKS else None
                fine = value.isfinite()
                if mask is not None:
                    fine = fine | ~mask.unsqueeze(-1)
                found[".".join((*path, name))] = fine.all()
    return found


def diagnostics(policy: object, batch: TensorDictBase) -> dict[str, Tensor]:
    """Numbers that show trouble early, 0-d each: what the policy's modules say, its gradients and weights.

    Every module with a method `diagnostics(graph)` is asked about the last step of the batch. Norms are of
    the last minibatch's gradients, one per layer, and of all weights.
    """
    if not isinstance(policy, nn.Module):
        return {}
    found: dict[str, Tensor] = {}
    graph = batch[..., -1].get(GRAPH, None)
    for name, module in policy.named_modules():
        if hasattr(module, "diagnostics") and graph is not None:
            told = module.diagnostics(graph)
            found |= {f"{name}/{key}".strip("/"): value for key, value in told.items()}
    layers: dict[str, list[Tensor]] = {}
    for name, parameter in policy.named_parameters():
        if parameter.grad is not None:
            layers.setdefault(_layer(name), []).append(parameter.grad)
    found |= {f"{name}/gradient_norm": nn.utils.get_total_norm(grads) for name, grads in layers.items()}
    weights = [parameter.detach() for parameter in policy.parameters()]
    return found | ({"weight_norm": nn.utils.get_total_norm(weights)} if weights else {})


def to_host(values: Mapping[str, Tensor]) -> dict[str, float]:
    """0-d tensors as numbers, with one wait for the device."""
    if not values:
        return {}
    stacked = torch.stack([value.detach().double().reshape(()) for value in _on_one_device(values)])
    return dict(zip(values, stacked.tolist(), strict=True))


class Witness:
    """Remembers what a policy saw last, for the case that it could make nothing of it.

    Args:
        policy: whose inputs are remembered, if it is a module.

    Attributes:
        root: the last input, or whatever was put in its place.
    """

    def __init__(self, policy: object) -> None:
        self.root: TensorDictBase | None = None
        if isinstance(policy, nn.Module):
            policy.register_forward_pre_hook(self._see)

    def causes(self) -> list[str]:
        """The names in what was seen that are not finite."""
        flags = {} if self.root is None else to_host(finite(self.root))
        return [name for name, fine in flags.items() if not fine]

    def _see(self, module: nn.Module, inputs: tuple[object, ...]) -> None:  # noqa: ARG002 - torch's signature
        if inputs and isinstance(inputs[0], TensorDictBase):
            self.root = inputs[0]


def stop(
    folder: Path, batch: TensorDictBase, *, causes: list[str], frames: int, good: Path | None
) -> NumericalStop:
    """Keep the batch in the run folder, and make the error that ends the run.

    Args:
        folder: of the run.
        batch: what was collected.
        causes: what is not finite.
        frames: before this batch.
        good: the last good checkpoint.
    """
    path = folder / f"nonfinite-{frames:012d}.safetensors"
    tensors = {
        name if isinstance(name, str) else ".".join(name): value
        for name, value in batch.items(include_nested=True, leaves_only=True)
        if isinstance(value, Tensor) and value.dtype in tensor_file.DTYPES
    }
    path.unlink(missing_ok=True)
    tensor_file.write(path, tensors)
    durable.replace_whole(
        path.with_suffix(".json"), json.dumps({"frames": frames, "causes": causes}).encode()
    )
    listed = ", ".join(causes[:5]) + (f" and {len(causes) - 5} more" if len(causes) > 5 else "")
    saved = f"the last good checkpoint is {good}" if good else "there is no checkpoint yet"
    return NumericalStop(
        f"not finite in the batch after {frames} frames: {listed}; {saved}",
        hint=f"the batch is kept in {path}; a lower learning rate or gradient norm is the usual remedy",
    )


def _owners(
    tensordict: TensorDictBase, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], TensorDictBase]]:
    """Every nested TensorDict that is watched, with its path."""
    yield path, tensordict
    for name, value in tensordict.items():
        if isinstance(value, TensorDictBase) and name not in UNWATCHED:
            yield from _owners(value, (*path, name))


def _layer(parameter: str) -> str:
    """The layer that a parameter belongs to: its path up to the first number, or two names deep."""
    found = re.match(r"(.*?\.\d+)\.", parameter)
    return found[1] if found else ".".join(parameter.split(".")[:-1][:2]) or parameter


def _on_one_device(values: Mapping[str, Tensor]) -> list[Tensor]:
    devices = {value.device for value in values.values()}
    if len(devices) == 1:
        return list(values.values())
    target = next(device for device in devices if device.type != "cpu")
    return [value.to(target, non_blocking=True) for value in values.values()]
