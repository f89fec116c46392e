"""Weights and optimiser moments as nested dicts of tensors by name, which a checkpoint can hold unpickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from edgewise.config.errors import CheckpointError


def module_state(module: nn.Module) -> dict[str, Tensor]:
    """Copies of parameters and persistent buffers by name; a shared one once, under its first name."""
    own = {name for name, _ in chain(module.named_parameters(), module.named_buffers())}
    return {name: value.detach().clone() for name, value in module.state_dict().items() if name in own}


def load_module_state(module: nn.Module, state: Mapping[str, Tensor], *, name: str) -> None:
    """Put back what `module_state` gave; `name` is what to call the module where it does not fit."""
    current = module_state(module)
    _same_names(state, current, name=name)
    for key, value in state.items():
        if value.shape != current[key].shape:
            there, here = tuple(value.shape), tuple(current[key].shape)
            raise CheckpointError(
                f"{name}.{key} has shape {there} in the checkpoint, {here} here",
                hint="build the model with the config that is saved beside the checkpoint",
            )
    module.load_state_dict(dict(state), strict=False)


def optimizer_state(optimizer: Optimizer, module: nn.Module) -> dict[str, dict[str, Tensor]]:
    """Copies of the optimiser's tensors, moment → parameter name → tensor; empty before its first step."""
    state: dict[str, dict[str, Tensor]] = {}
    for name, parameter in module.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            state.setdefault(moment, {})[name] = value.detach().clone()
    return state


def load_optimizer_state(
    optimizer: Optimizer, module: nn.Module, state: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Put back what `optimizer_state` gave, on the devices that the optimiser wants it on."""
    parameters = dict(module.named_parameters())
    # A fused or captured step reads its count on the device; any other wants it on the host.
    counts_there = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    optimizer.state.clear()
    for moment, values in state.items():
        unknown = values.keys() - parameters.keys()
        if unknown:
            raise CheckpointError(f"the optimiser's {moment} names {_some(unknown)}, which the model has not")
        for name, value in values.items():
            entry: dict[str, Any] = optimizer.state[parameters[name]]
            on_host = moment == "step" and not counts_there
            entry[moment] = value.detach().clone().to("cpu" if on_host else parameters[name].device)


def _same_names(state: Mapping[str, Any], current: Mapping[str, Any], *, name: str) -> None:
    missing, foreign = current.keys() - state.keys(), state.keys() - current.keys()
    if missing:
        raise CheckpointError(f"the checkpoint's {name} lacks {_some(missing)}")
    if foreign:
        raise CheckpointError(f"the checkpoint's {name} has {_some(foreign)}, which the model here has not")


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(ordered[:3]) + more
