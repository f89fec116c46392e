"""Legal actions at random for every action layout: the policy that needs no model, and the one to beat."""

from __future__ import annotations

import torch
from tensordict import TensorDictBase
from torch import Tensor

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
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec


def random_action(
    layout: ActionLayout,
    graph: GraphSpec,
    *,
    observation: TensorDictBase,
    generator: torch.Generator | None = None,
) -> Tensor:
    """A legal action of every world, uniformly; independent sets greedily in uniform order, so maximal.

    Args:
        layout: how the environment is acted on.
        graph: the shape of its graphs.
        observation: batch size `[*B]`, with `graph` and, where the environment has them, `action_mask` or
            `n_actions`.
        generator: draws the numbers, on the observation's device; torch's own without.
    """
    lead, mask = observation.batch_size, observation.get("action_mask", None)
    device = observation[GRAPH, "node_mask"].device
    match layout:
        case ChooseNode() | ChooseFromSet() | ChooseEdgePerGroup():
            return _pick(_required(mask, layout), generator)
        case ChooseSuccessor():
            share = torch.rand(lead, device=device, generator=generator)
            count = observation["n_actions"]
            return (share * count).long().minimum(count - 1)
        case AgentsDiscrete(agents, actions):
            shape = (*lead, agents, actions)
            return _pick(
                torch.ones(shape, dtype=torch.bool, device=device) if mask is None else mask, generator
            )
        case EdgesDiscrete(actions):
            slots = graph.edges_of(observation[GRAPH]).mask
            every = slots.new_ones(*slots.shape, actions)
            return _pick(every if mask is None else mask, generator)
        case AgentsContinuous(agents, dim, low, high):
            share = torch.rand(*lead, agents, dim, device=device, generator=generator)
            return low + (high - low) * share
        case ChooseIndependentSet():
            return _independent_set(_required(mask, layout), _adjacency(observation[GRAPH], graph), generator)


def _required(mask: Tensor | None, layout: ActionLayout) -> Tensor:
    if mask is None:
        raise ValueError(
            f"{type(layout).__name__} needs `action_mask` beside `graph`, and the observation has none"
        )
    return mask


def _pick(mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """One true entry of each row of the last dimension, `[..., K]` bool to `[...]` int64."""
    if mask.device.type == "cpu" and not torch.compiler.is_compiling():
        _refuse_empty(mask)
    draw = torch.rand(mask.shape, device=mask.device, generator=generator)
    return draw.masked_fill(~mask, -1.0).argmax(-1)


def _refuse_empty(mask: Tensor) -> None:
    empty = ~mask.any(-1)
    if empty.any():
        where = tuple(empty.nonzero()[0].tolist())
        raise ValueError(f"action_mask{list(where)} allows nothing: world {where[0]} has no legal action")


def _adjacency(graph: TensorDictBase, spec: GraphSpec) -> Tensor:
    """Which pairs of nodes an edge joins, in either direction, `[*B, N, N]` bool."""
    edges, nodes = spec.edges_of(graph), spec.num_nodes
    slot = edges.index[..., 0, :] * nodes + edges.index[..., 1, :]
    count = torch.zeros(*slot.shape[:-1], nodes * nodes, dtype=torch.int32, device=slot.device)
    joined = count.scatter_add(-1, slot, edges.mask.int()).unflatten(-1, (nodes, nodes)) > 0
    return joined | joined.transpose(-1, -2)


def _independent_set(mask: Tensor, adjacency: Tensor, generator: torch.Generator | None) -> Tensor:
    """Nodes taken in random order wherever no neighbour was taken before, `[*B, N]` bool."""
    order = torch.rand(mask.shape, device=mask.device, generator=generator).argsort(-1)
    free, chosen = mask, torch.zeros_like(mask)
    for rank in range(mask.shape[-1]):
        node = order[..., rank : rank + 1]
        taken = torch.zeros_like(mask).scatter(-1, node, True) & free
        near = (adjacency & taken.unsqueeze(-1)).any(-2)
        chosen, free = chosen | taken, free & ~taken & ~near
    return chosen
