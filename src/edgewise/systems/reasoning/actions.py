"""The action of a proof: choose one of the successors of a state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionMarks, Choices, DiscreteLayout
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec

NUM_ACTIONS = "n_actions"


@dataclass(frozen=True)
class ChooseSuccessor(DiscreteLayout):
    """Choose one of the successors of a state: action `[*B]` int64, an index into the list of successors.

    Successors are computed from the state and are not part of the observation. The observation must have
    `n_actions [*B]` int64, the number of successors, from 1 to `max_choices`.

    Args:
        max_choices: largest number of successors.
    """

    max_choices: int

    @property
    def head(self) -> type | str:
        """Raise ConfigError: successors are not in the graph."""
        raise ConfigError(
            "ChooseSuccessor has no head: successors are not in the graph, so it needs a policy of its own",
            hint="show them, with `view: padded`, or use a recipe of that environment",
        )

    @property
    def features(self) -> type | str:
        """Raise ConfigError: successors are not in the graph."""
        raise ConfigError(
            "ChooseSuccessor has no action values: successors are not in the graph that networks read",
            hint="show them, with `view: padded`, or use ppo with a recipe of that environment",
        )

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

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the successors that there are, `[*B, max_choices]`."""
        count: Tensor = observation[NUM_ACTIONS]
        return Choices(torch.arange(self.max_choices, device=count.device) < count.unsqueeze(-1))

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Give the number of the successor."""
        return ActionMarks(f"successor {int(action)}")
