"""Each edge picks one of a fixed number of actions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, Choices, is_allowed, sample_allowed
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class EdgesDiscrete(ActionLayout):
    """Each edge slot picks one of `num_actions`: action `[*B, E]` int64.

    The mask is optional: `action_mask [*B, E, num_actions]`. Slots without an edge pick anything in range.

    Args:
        num_actions: number of actions of an edge.
    """

    num_actions: int

    mask_dims = ("edges", None)

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of one action per edge slot, `[B, E]`."""
        return Categorical(self.num_actions, shape=(num_envs, num_edges), dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(E, num_actions)`."""
        return (num_edges, self.num_actions)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:
        """Return the allowed actions of every edge slot, `[*B, E, K]`; edges that exist count."""
        exists = graph.edges_of(observation[GRAPH]).mask
        return Choices(self._mask(observation, exists), exists)

    def sample(
        self, observation: TensorDictBase, graph: GraphSpec, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sample an allowed action for every edge slot, including those without an edge."""
        exists = graph.edges_of(observation[GRAPH]).mask
        return sample_allowed(self._mask(observation, exists), generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have every action in range and those of existing edges allowed."""
        exists = graph.edges_of(observation[GRAPH]).mask
        return is_allowed(action, self._mask(observation, exists) | ~exists.unsqueeze(-1)).all(-1)

    def _mask(self, observation: TensorDictBase, exists: Tensor) -> Tensor:
        """Return the mask of an observation, all true if it has none; `exists` is `[*B, E]`."""
        mask: Tensor | None = observation.get(MASK, None)
        return exists.new_ones(*exists.shape, self.num_actions) if mask is None else mask
