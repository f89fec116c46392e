"""Each agent picks one of a fixed number of actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.graphs.actions.discrete import DiscreteLayout
from edgewise.graphs.actions.layout import Choices
from edgewise.graphs.actions.marks import ActionMarks, active_agents
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class AgentsDiscrete(DiscreteLayout):
    """Each of the first `num_agents` nodes picks one of `num_actions`: action `[*B, A]` int64.

    The mask is optional: `action_mask [*B, A, num_actions]`.

    Args:
        num_agents: number of agents A.
        num_actions: number of actions of an agent.
    """

    num_agents: int = field()
    num_actions: int

    head = "edgewise.models.heads:AgentsDiscreteHead"
    features = "edgewise.models.graph_features:AgentFeatures"
    mask_dims = ("agents", None)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(A, num_actions)`."""
        return (self.num_agents, self.num_actions)

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:  # noqa: ARG002
        """Return true: agents are the first nodes."""
        return True

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the allowed actions of every agent, `[*B, A, K]`; agents that exist and are active count.

        A is the width of `agents.active`, so that teams of any size have choices.
        """
        active, mask = observation.get(ACTIVE, None), observation.get(MASK, None)
        exists: Tensor = observation[GRAPH, "node_mask"]
        counted = (
            exists[..., : self.num_agents] if active is None else exists[..., : active.shape[-1]] & active
        )
        if mask is None:
            mask = counted.new_ones(*counted.shape, self.num_actions)
        return Choices(mask, counted)

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:
        """Label the active agents with their actions."""
        active = active_agents(observation, self.num_agents).tolist()
        return ActionMarks(
            labels={agent: str(choice) for agent, choice in enumerate(action.tolist()) if active[agent]}
        )
