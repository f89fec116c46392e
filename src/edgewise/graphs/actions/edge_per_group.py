"""Choose one edge of each group of edges, or none."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import DiscreteLayout, is_allowed
from edgewise.graphs.actions.layout import Choices
from edgewise.graphs.actions.marks import ActionMarks, listed
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseEdgePerGroup(DiscreteLayout):
    """Choose one edge of each group of edges, or none: action `[*B, num_groups]` int64, 0 for none.

    The first `num_groups * group_size` edge slots are the groups, one after another. The mask is
    `action_mask [*B, num_groups, 1 + group_size]`; its first entry stands for none. The mask of an absent
    group allows only none.

    Args:
        num_groups: number of groups G.
        group_size: edges per group.
    """

    num_groups: int
    group_size: int

    head = "edgewise.models.edge_heads:ChooseEdgePerGroupHead"
    features = "edgewise.models.graph_features:GroupFeatures"
    needs_mask = True
    mask_dims = ("groups", None)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(G, 1 + group_size)`."""
        return (self.num_groups, 1 + self.group_size)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the mask `[*B, G, 1 + K]`; groups with an allowed edge count."""
        mask = self.required_mask(observation)
        return Choices(mask, mask[..., 1:].any(-1))

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds have an allowed choice in every group, also where only none is allowed."""
        return is_allowed(action, self.required_mask(observation)).all(-1)

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Mark the edges."""
        first = torch.arange(self.num_groups) * self.group_size
        edges = tuple((first + action.cpu() - 1)[action.cpu() > 0].tolist())
        return ActionMarks(f"edges {listed(edges)}", edges=edges)
