"""Choose one edge of the graph."""

from __future__ import annotations

from dataclasses import dataclass

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import DiscreteLayout
from edgewise.graphs.actions.layout import Choices
from edgewise.graphs.actions.marks import ActionMarks
from edgewise.graphs.edges import Explicit
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseEdge(DiscreteLayout):
    """Choose one edge of the graph: action `[*B]` int64, an edge slot, mask `action_mask [*B, E]`.

    The mask is optional; without one, every edge that exists may be chosen.
    """

    head = "edgewise.models.edge_heads:ChooseEdgeHead"
    features = "edgewise.models.graph_features:EdgeChoiceFeatures"
    mask_dims = ("edges",)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(E,)`."""
        return (num_edges,)

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:
        """Return whether edges are stored: the slots of a rule's edges depend on the number of nodes."""
        return isinstance(graph.edges, Explicit)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:
        """Return the allowed edges that exist, `[*B, E]`; without a mask, all that exist."""
        exists: Tensor = graph.edges_of(observation[GRAPH]).mask
        mask = observation.get(MASK, None)
        return Choices(exists if mask is None else exists & mask)

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Mark the edge."""
        return ActionMarks(f"edge {int(action)}", edges=(int(action),))
