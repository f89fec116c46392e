"""Choose one member of a set of nodes or edges that the environment offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import DiscreteLayout
from edgewise.graphs.actions.layout import Choices
from edgewise.graphs.actions.marks import ActionMarks
from edgewise.graphs.edges import Explicit
from edgewise.graphs.keys import CHOICES, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseFromSet(DiscreteLayout):
    """Choose one member of a set of at most `max_choices` nodes or edges: action `[*B]` int64.

    The mask is `action_mask [*B, max_choices]`, true where a place of the set is filled. The observation must
    have `choices [*B, max_choices]` int64 with the node or edge slot of each member.

    Args:
        max_choices: capacity of the set K.
        members: whether `choices` are node slots or edge slots.
    """

    max_choices: int
    members: Literal["nodes", "edges"] = "nodes"

    head = "edgewise.models.from_set_head:ChooseFromSetHead"
    features = "edgewise.models.graph_features:SetFeatures"
    needs_mask = True
    mask_dims = ("choices",)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(K,)`."""
        return (self.max_choices,)

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:
        """Return whether edges are stored: the slots of a rule's edges depend on the number of nodes."""
        return self.members == "nodes" or isinstance(graph.edges, Explicit)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the filled places, `[*B, K]`."""
        return Choices(self.required_mask(observation))

    def legal_nodes(self, observation: TensorDictBase) -> Tensor | None:
        """Return the members, if they are nodes; places that are not filled may hold anything."""
        mask, exists = observation.get(MASK, None), observation[GRAPH, "node_mask"]
        if self.members == "edges" or mask is None:
            return None
        members = observation[CHOICES].masked_fill(~mask, 0)
        return torch.zeros_like(exists, dtype=torch.int32).scatter_add(-1, members, mask.int()) > 0

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:
        """Mark the member."""
        slot = int(observation[CHOICES][int(action)])
        if self.members == "nodes":
            return ActionMarks(f"node {slot}", nodes=(slot,))
        return ActionMarks(f"edge {slot}", edges=(slot,))
