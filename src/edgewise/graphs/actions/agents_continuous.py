"""Each agent gives a vector of bounded real numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Bounded, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, check_action
from edgewise.graphs.actions.marks import ActionMarks, active_agents
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class AgentsContinuous(ActionLayout):
    """Each of the first `num_agents` nodes gives `dim` numbers in [low, high]: action `[*B, A, dim]` float32.

    Args:
        num_agents: number of agents A.
        dim: numbers per agent.
        low: lower bound of each number.
        high: upper bound of each number.
    """

    num_agents: int = field()
    dim: int
    low: float = -1.0
    high: float = 1.0

    head = "edgewise.models.heads:AgentsContinuousHead"
    features = "edgewise.models.graph_features:AgentFeatures"
    mask_dims = ("agents", None)

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of one bounded vector per agent, `[B, A, dim]`."""
        shape = (num_envs, self.num_agents, self.dim)
        return Bounded(self.low, self.high, shape=shape, dtype=torch.float32, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(A, dim)`."""
        return (self.num_agents, self.dim)

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:  # noqa: ARG002
        """Return true: agents are the first nodes."""
        return True

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample every number uniformly between the bounds."""
        shape = (*observation.batch_size, self.num_agents, self.dim)
        device = observation[GRAPH, "node_mask"].device
        share = torch.rand(shape, device=device, generator=generator)
        return self.low + (self.high - self.low) * share

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds have all numbers of all agents between the bounds; NaN is not."""
        shape = (*observation.batch_size, self.num_agents, self.dim)
        dtype = action.dtype if action.is_floating_point() else torch.float32
        check_action(action, shape=shape, dtype=dtype)
        return ((action >= self.low) & (action <= self.high)).flatten(-2).all(-1)

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:
        """Draw the vectors of active agents as arrows; the largest possible number has length 1."""
        vectors = action.float() / max(abs(self.low), abs(self.high), 1e-9)
        active = active_agents(observation, self.num_agents).unsqueeze(-1)
        return ActionMarks(arrows=vectors.masked_fill(~active, 0.0))
