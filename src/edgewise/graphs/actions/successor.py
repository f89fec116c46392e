"""Choose one of the successors of a state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, check_action
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec

NUM_ACTIONS = "n_actions"


@dataclass(frozen=True)
class ChooseSuccessor(ActionLayout):
    """Choose one of the successors of a state: action `[*B]` int64, an index into the list of successors.

    Successors are computed from the state and are not part of the observation. The observation must have
    `n_actions [*B]` int64, the number of successors, from 1 to `max_choices`.

    Args:
        max_choices: largest number of successors.
    """

    max_choices: int

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of an index of a successor, `[B]`."""
        return Categorical(self.max_choices, shape=(num_envs,), dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(max_choices,)`."""
        return (self.max_choices,)

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample one of the `n_actions` successors."""
        device = observation[GRAPH, "node_mask"].device
        share = torch.rand(observation.batch_size, device=device, generator=generator)
        count: Tensor = observation[NUM_ACTIONS]
        return (share * count).long().minimum(count - 1)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds choose one of their `n_actions` successors."""
        count: Tensor = observation[NUM_ACTIONS]
        check_action(action, shape=tuple(count.shape), dtype=torch.int64)
        return (action >= 0) & (action < count)
