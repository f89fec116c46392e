"""The action of a schedule: choose a set of nodes with no edge between two of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Binary, TensorSpec

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ActionMarks
from edgewise.graphs.actions.layout import check_action
from edgewise.graphs.actions.marks import listed
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseIndependentSet(ActionLayout):
    """Choose a set of nodes with no edge between two of them: action `[*B, N]` bool.

    The mask is `action_mask [*B, N]`. The empty set is always legal. Edges count in either direction.
    """

    head = "edgewise.systems.queueing.models.heads:ChooseIndependentSetHead"
    needs_mask = True
    mask_dims = ("nodes",)

    @property
    def features(self) -> type | str:
        """Raise ConfigError: the best set does not follow from values of nodes."""
        raise ConfigError(
            "ChooseIndependentSet has no action values: the best of all sets without adjacent nodes "
            "is a hard problem of its own in every step",
            hint="use ppo or clone",
        )

    def spec(
        self,
        graph: GraphSpec,
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of one flag per node, `[B, N]`."""
        return Binary(shape=(num_envs, graph.num_nodes), dtype=torch.bool, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(N,)`."""
        return (graph.num_nodes,)

    def default_mask(self, graph: TensorDictBase) -> Tensor:
        """Return the nodes that exist."""
        nodes: Tensor = graph["node_mask"]
        return nodes

    def has_legal_action(self, mask: Tensor) -> Tensor:
        """Return true for every world: the empty set is legal."""
        return mask.new_ones(len(mask))

    def sample(
        self, observation: TensorDictBase, graph: GraphSpec, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sample a maximal independent set: add allowed nodes greedily in uniformly random order."""
        mask = self.required_mask(observation)
        adjacency = _adjacency(observation[GRAPH], graph)
        order = torch.rand(mask.shape, device=mask.device, generator=generator).argsort(-1)
        free, chosen = mask, torch.zeros_like(mask)
        for rank in range(mask.shape[-1]):
            node = order[..., rank : rank + 1]
            added = torch.zeros_like(mask).scatter(-1, node, True) & free
            chosen, free = chosen | added, free & ~added & ~_neighbours(added, adjacency)
        return chosen

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds choose allowed nodes that exist and no two that an edge joins."""
        mask = self.required_mask(observation) & observation[GRAPH, "node_mask"]
        check_action(action, shape=tuple(mask.shape), dtype=torch.bool)
        conflict = action & _neighbours(action, _adjacency(observation[GRAPH], graph))
        return ~(conflict | action & ~mask).any(-1)

    def legal_nodes(self, observation: TensorDictBase) -> Tensor | None:
        """Return the mask."""
        mask: Tensor | None = observation.get(MASK, None)
        return mask

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Mark the nodes of the set."""
        nodes = tuple(action.nonzero().squeeze(-1).tolist())
        return ActionMarks(f"nodes {listed(nodes)}", nodes=nodes)


def _neighbours(chosen: Tensor, adjacency: Tensor) -> Tensor:
    """Return the nodes with a neighbour in `chosen [*B, N]`, `[*B, N]` bool."""
    return (adjacency & chosen.unsqueeze(-1)).any(-2)


def _adjacency(graph: TensorDictBase, spec: GraphSpec) -> Tensor:
    """Return which pairs of nodes an edge joins in either direction, `[*B, N, N]` bool."""
    edges, nodes = spec.edges_of(graph), spec.num_nodes
    slot = edges.index[..., 0, :] * nodes + edges.index[..., 1, :]
    count = torch.zeros(*slot.shape[:-1], nodes * nodes, dtype=torch.int32, device=slot.device)
    joined = count.scatter_add(-1, slot, edges.mask.int()).unflatten(-1, (nodes, nodes)) > 0
    return joined | joined.transpose(-1, -2)
