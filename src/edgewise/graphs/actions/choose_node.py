"""Choose one node of the graph."""

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
class ChooseNode(ActionLayout):
    """Choose one node of the graph: action `[*B]` int64, mask `action_mask [*B, N]`."""

    needs_mask = True
    mask_dims = ("nodes",)

    def spec(
        self,
        graph: GraphSpec,
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of a node index, `[B]`."""
        return Categorical(graph.num_nodes, shape=(num_envs,), dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(N,)`."""
        return (graph.num_nodes,)

    def default_mask(self, graph: TensorDictBase) -> Tensor:
        """Return the nodes that exist."""
        nodes: Tensor = graph["node_mask"]
        return nodes

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the allowed nodes that exist, `[*B, N]`; without a mask, all that exist."""
        exists, mask = observation[GRAPH, "node_mask"], observation.get(MASK, None)
        return Choices(exists if mask is None else exists & mask)

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample one of the allowed nodes."""
        return sample_allowed(self.required_mask(observation), generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds choose an allowed node that exists."""
        return is_allowed(action, self.required_mask(observation) & observation[GRAPH, "node_mask"])
