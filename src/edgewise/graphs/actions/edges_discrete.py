"""Each edge picks one of a fixed number of actions."""

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
class EdgesDiscrete(DiscreteLayout):
    """Each edge slot picks one of `num_actions`: action `[*B, E]` int64.

    The mask is optional: `action_mask [*B, E, num_actions]`. Slots without an edge pick anything in range.

    Args:
        num_actions: number of actions of an edge.
    """

    num_actions: int

    head = "edgewise.models.edge_heads:EdgesDiscreteHead"
    features = "edgewise.models.graph_features:EdgeFeatures"
    mask_dims = ("edges", None)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(E, num_actions)`."""
        return (num_edges, self.num_actions)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:
        """Return the allowed actions of every edge slot, `[*B, E, K]`; edges that exist count."""
        exists, mask = graph.edges_of(observation[GRAPH]).mask, observation.get(MASK, None)
        return Choices(exists.new_ones(*exists.shape, self.num_actions) if mask is None else mask, exists)

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Shade every edge by its action."""
        return ActionMarks(edge_shades=action.float() / max(self.num_actions - 1, 1))
