"""TorchRL specs of an environment, from its action layout and one sample of what it emits."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torchrl.data import Binary, Bounded, Categorical, Composite, TensorSpec, Unbounded

from edgewise.graphs.actions import (
    ActionLayout,
    AgentsContinuous,
    AgentsDiscrete,
    ChooseEdgePerGroup,
    ChooseFromSet,
    ChooseIndependentSet,
    ChooseNode,
    ChooseSuccessor,
    EdgesDiscrete,
)
from edgewise.graphs.spec import GraphSpec


def action_spec(
    layout: ActionLayout, graph: GraphSpec, *, num_envs: int, num_edges: int, device: torch.device
) -> TensorSpec:
    """What an action of this layout may be, in an environment of `num_envs` worlds.

    Args:
        layout: how the environment is acted on.
        graph: its graph.
        num_envs: B.
        num_edges: E, how many edge slots the graph has.
        device: of the actions.
    """
    lead = (num_envs,)
    match layout:
        case ChooseNode():
            return Categorical(graph.num_nodes, shape=lead, dtype=torch.int64, device=device)
        case ChooseFromSet(max_choices) | ChooseSuccessor(max_choices):
            return Categorical(max_choices, shape=lead, dtype=torch.int64, device=device)
        case AgentsDiscrete(agents, actions):
            return Categorical(actions, shape=(*lead, agents), dtype=torch.int64, device=device)
        case EdgesDiscrete(actions):
            return Categorical(actions, shape=(*lead, num_edges), dtype=torch.int64, device=device)
        case ChooseEdgePerGroup(groups, size):
            return Categorical(1 + size, shape=(*lead, groups), dtype=torch.int64, device=device)
        case AgentsContinuous(agents, dim, low, high):
            return Bounded(low, high, shape=(*lead, agents, dim), dtype=torch.float32, device=device)
        case ChooseIndependentSet():
            return Binary(shape=(*lead, graph.num_nodes), dtype=torch.bool, device=device)


def check_names(graph: TensorDictBase, spec: GraphSpec, *, env: str) -> None:
    """Raise ValueError where an environment's `observe` gives other graph entries than its GraphSpec has."""
    given, planned = set(graph.keys()), set(spec.composite().keys())
    if given != planned:
        missing, surplus = sorted(planned - given), sorted(given - planned)
        raise ValueError(
            f"the graph that {env}.observe gives is not of its GraphSpec: "
            f"it lacks {', '.join(missing) or 'nothing'} and adds {', '.join(surplus) or 'nothing'}"
        )


def spec_like(sample: TensorDictBase, num_envs: int) -> Composite:
    """Specs for `num_envs` worlds shaped as `sample`, one world: binary for truth values, else unbounded."""
    lead, device = (num_envs,), sample.device
    entries: dict[str, TensorSpec] = {}
    for name, value in sample.items():
        if isinstance(value, TensorDictBase):
            entries[name] = spec_like(value, num_envs)
        elif value.dtype == torch.bool:
            entries[name] = Binary(shape=(*lead, *value.shape[1:]), dtype=torch.bool, device=device)
        else:
            entries[name] = Unbounded((*lead, *value.shape[1:]), dtype=value.dtype, device=device)
    kind = SelfNamingComposite if "self" in entries else Composite
    return kind(entries, shape=lead, device=device)


class SelfNamingComposite(Composite):
    """A Composite with an entry called `self`, which TorchRL hands on as a keyword argument when it moves."""

    def to(self, dest: torch.dtype | torch.device | str | int) -> Composite:
        """The same entries as another type or on another device."""
        moved = {name: None if part is None else part.to(dest) for name, part in self.items()}
        device = self.device if isinstance(dest, torch.dtype) else torch.device(dest)
        return type(self)(moved, shape=self.shape, device=device)


def done_spec(num_envs: int, device: torch.device) -> Composite:
    """`done`, `terminated` and `truncated`, each `[num_envs, 1]` bool."""
    names = ("done", "terminated", "truncated")
    flags = {name: Categorical(2, shape=(num_envs, 1), dtype=torch.bool, device=device) for name in names}
    return Composite(flags, shape=(num_envs,), device=device)
