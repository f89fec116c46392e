"""TorchRL specs of an environment, built from one sampled root."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torchrl.data import Binary, Categorical, Composite, TensorSpec, Unbounded

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import GRAPH, STEP
from edgewise.graphs.spec import GraphSpec
from edgewise.scale.devices import in_bytes, total_memory


def check_setup(env: object) -> None:
    """Raise ConfigError if `setup` of an environment has not set `self.graph` and `self.actions`."""
    for name, wanted in (("graph", GraphSpec), ("actions", ActionLayout)):
        found = getattr(env, name, None)
        if not isinstance(found, wanted):
            given = "sets no" if found is None else f"sets {type(found).__name__} as"
            raise ConfigError(
                f"{type(env).__name__}.setup {given} `self.{name}`, expected an object of {wanted.__name__}"
            )


def wrong_return(env: object, method: str, found: object) -> ConfigError:
    """Return the error for a method of an environment that returned something of another type."""
    expected = "a Transition" if method == "advance" else "a dict of tensors"
    return ConfigError(f"{type(env).__name__}.{method} returned {type(found).__name__}, expected {expected}")


def check_described(root: TensorDictBase, *, env: str, describes: bool) -> None:
    """Raise ConfigError if an environment does not split its observation as `describe` promises.

    Args:
        root: of a new world.
        env: name of its class.
        describes: whether it has `describe`.
    """
    if not describes:
        if root.get(GRAPH, None) is None:
            raise ConfigError(f"{env}.observe returns no `graph`", hint="return it there, or from `describe`")
        return
    if root.get(STEP, None) is None or root.get(GRAPH, None) is None:
        raise ConfigError(
            f"{env} has `describe`, which must return the graph's entries; `observe` then returns `step`",
            hint="`step` may have `nodes` (references), `x` (node features) and `u` (graph features)",
        )


def check_names(graph: TensorDictBase, spec: GraphSpec, *, env: str) -> None:
    """Raise ConfigError if `observe` of an environment returns other graph entries than its GraphSpec has."""
    given, planned = set(graph.keys()), set(spec.composite().keys())
    if given != planned:
        missing, surplus = sorted(planned - given), sorted(given - planned)
        raise ConfigError(
            f"the graph that {env}.observe returns does not match its GraphSpec: "
            f"it lacks {', '.join(missing) or 'nothing'} and adds {', '.join(surplus) or 'nothing'}"
        )


def check_room(graph: GraphSpec, num_envs: int, *, device: torch.device, env: str) -> None:
    """Raise ConfigError if the graphs of all worlds alone need more memory than there is."""
    each = sum(entry.shape.numel() * entry.dtype.itemsize for entry in graph.composite().values())
    needed, there = num_envs * each, total_memory(device)
    if needed > there:
        raise ConfigError(
            f"{num_envs:,} worlds of {env} with {graph.num_nodes:,} nodes need at least "
            f"{in_bytes(needed)}, and {device} has {in_bytes(there)}",
            hint="use fewer worlds (num_envs, or episodes of an evaluation) or smaller graphs",
        )


def spec_like(sample: TensorDictBase, num_envs: int) -> Composite:
    """Build specs for `num_envs` worlds like the one in `sample`: binary for bool, unbounded otherwise."""
    lead, device = (num_envs,), sample.device
    entries: dict[str, TensorSpec] = {}
    for name, value in sample.items():
        if isinstance(value, TensorDictBase):
            entries[name] = spec_like(value, num_envs)
        elif value.dtype == torch.bool:
            entries[name] = Binary(shape=(*lead, *value.shape[1:]), dtype=torch.bool, device=device)
        else:
            entries[name] = Unbounded((*lead, *value.shape[1:]), dtype=value.dtype, device=device)
    kind = CompositeWithSelf if "self" in entries else Composite
    return kind(entries, shape=lead, device=device)


class CompositeWithSelf(Composite):
    """A Composite that may have an entry called `self`, which TorchRL's own cannot move between devices."""

    def to(self, dest: torch.dtype | torch.device | str | int) -> Composite:
        """Return the entries with another dtype or on another device."""
        moved = {name: None if part is None else part.to(dest) for name, part in self.items()}
        device = self.device if isinstance(dest, torch.dtype) else torch.device(dest)
        return type(self)(moved, shape=self.shape, device=device)


def done_spec(num_envs: int, device: torch.device) -> Composite:
    """Build the specs of `done`, `terminated` and `truncated`, each `[num_envs, 1]` bool."""
    names = ("done", "terminated", "truncated")
    flags = {name: Categorical(2, shape=(num_envs, 1), dtype=torch.bool, device=device) for name in names}
    return Composite(flags, shape=(num_envs,), device=device)
