"""Choose one node of the graph."""

from __future__ import annotations

from dataclasses import dataclass

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import DiscreteLayout
from edgewise.graphs.actions.layout import Choices
from edgewise.graphs.actions.marks import ActionMarks
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseNode(DiscreteLayout):
    """Choose one node of the graph: action `[*B]` int64, mask `action_mask [*B, N]`."""

    head = "edgewise.models.heads:ChooseNodeHead"
    features = "edgewise.models.graph_features:NodeFeatures"
    needs_mask = True
    mask_dims = ("nodes",)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(N,)`."""
        return (graph.num_nodes,)

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:  # noqa: ARG002
        """Return true: an action is the number of a node."""
        return True

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the allowed nodes that exist, `[*B, N]`; without a mask, all that exist.

        Steps that are stored without their graph have a mask.
        """
        mask, observed = observation.get(MASK, None), observation.get(GRAPH, None)
        if observed is None:
            return Choices(self.required_mask(observation))
        exists = observed.get("node_mask")
        return Choices(exists if mask is None else exists & mask)

    def default_mask(self, graph: TensorDictBase) -> Tensor:
        """Return the nodes that exist."""
        nodes: Tensor = graph["node_mask"]
        return nodes

    def legal_nodes(self, observation: TensorDictBase) -> Tensor | None:
        """Return the mask."""
        mask: Tensor | None = observation.get(MASK, None)
        return mask

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Mark the node."""
        return ActionMarks(f"node {int(action)}", nodes=(int(action),))
