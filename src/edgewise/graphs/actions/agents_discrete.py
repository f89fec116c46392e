"""Each agent picks one of a fixed number of actions."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, Choices, is_allowed, sample_allowed
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class AgentsDiscrete(ActionLayout):
    """Each of the first `num_agents` nodes picks one of `num_actions`: action `[*B, A]` int64.

    The mask is optional: `action_mask [*B, A, num_actions]`.

    Args:
        num_agents: number of agents A.
        num_actions: number of actions of an agent.
    """

    num_agents: int = field()
    num_actions: int

    mask_dims = ("agents", None)

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of one action per agent, `[B, A]`."""
        shape = (num_envs, self.num_agents)
        return Categorical(self.num_actions, shape=shape, dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(A, num_actions)`."""
        return (self.num_agents, self.num_actions)

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

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample an allowed action for every agent, active or not."""
        return sample_allowed(self._mask(observation), generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds have every action in range and those of active agents allowed."""
        mask = self._mask(observation)
        active = observation.get(ACTIVE, None)
        if active is not None:
            mask = mask | ~active.unsqueeze(-1)
        return is_allowed(action, mask).all(-1)

    def _mask(self, observation: TensorDictBase) -> Tensor:
        """Return the mask of an observation, all true if it has none."""
        mask: Tensor | None = observation.get(MASK, None)
        if mask is not None:
            return mask
        shape = (*observation.batch_size, self.num_agents, self.num_actions)
        return torch.ones(shape, dtype=torch.bool, device=observation[GRAPH, "node_mask"].device)
