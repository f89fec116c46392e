"""States of modules and optimizers as nested dicts of tensors by name, which need no pickle to be saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from edgewise.config.errors import CheckpointError


def module_state(module: nn.Module) -> dict[str, Tensor]:
    """Copy parameters and persistent buffers by name; a shared tensor once, under its first name."""
    own = {name for name, _ in chain(module.named_parameters(), module.named_buffers())}
    return {name: value.detach().clone() for name, value in module.state_dict().items() if name in own}


def load_module_state(module: nn.Module, state: Mapping[str, Tensor], *, name: str) -> None:
    """Load a state of `module_state` into a module; `name` is the module's name in errors.

    Raises:
        CheckpointError: names or shapes differ.
    """
    current = module_state(module)
    _same_names(state, current, name=name)
    for key, value in state.items():
        if value.shape != current[key].shape:
            saved, built = tuple(value.shape), tuple(current[key].shape)
            raise CheckpointError(
                f"{name}.{key} has shape {saved} in the checkpoint, but {built} in the model",
                hint="build the model with the config that is saved beside the checkpoint",
            )
    module.load_state_dict(dict(state), strict=False)


def optimizer_state(optimizer: Optimizer, module: nn.Module) -> dict[str, dict[str, Tensor]]:
    """Copy an optimizer's state as moment → parameter name → tensor; empty before the first step."""
    state: dict[str, dict[str, Tensor]] = {}
    for name, parameter in module.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            state.setdefault(moment, {})[name] = value.detach().clone()
    return state


def load_optimizer_state(
    optimizer: Optimizer, module: nn.Module, state: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Load a state of `optimizer_state` into an optimizer, on the devices that it expects.

    Raises:
        CheckpointError: the state names a parameter that the module does not have.
    """
    parameters = dict(module.named_parameters())
    # A fused or capturable optimizer keeps its step count on the device, any other on the CPU.
    step_on_device = any(group.get("fused") or group.get("capturable") for group in optimizer.param_groups)
    optimizer.state.clear()
    for moment, values in state.items():
        unknown = values.keys() - parameters.keys()
        if unknown:
            raise CheckpointError(
                f"the optimizer's {moment} in the checkpoint has {_some(unknown)}, unlike the model"
            )
        for name, value in values.items():
            entry: dict[str, Any] = optimizer.state[parameters[name]]
            on_cpu = moment == "step" and not step_on_device
            entry[moment] = value.detach().clone().to("cpu" if on_cpu else parameters[name].device)


def _same_names(state: Mapping[str, Any], current: Mapping[str, Any], *, name: str) -> None:
    missing, foreign = current.keys() - state.keys(), state.keys() - current.keys()
    if missing:
        raise CheckpointError(f"the checkpoint's {name} lacks {_some(missing)}")
    if foreign:
        raise CheckpointError(f"the checkpoint's {name} has {_some(foreign)}, which the model does not have")


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(ordered[:3]) + more
