"""Choose one member of a set of nodes or edges that the environment offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, Choices, is_allowed, sample_allowed
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseFromSet(ActionLayout):
    """Choose one member of a set of at most `max_choices` nodes or edges: action `[*B]` int64.

    The mask is `action_mask [*B, max_choices]`, true where a place of the set is filled. The observation must
    have `choices [*B, max_choices]` int64 with the node or edge slot of each member.

    Args:
        max_choices: capacity of the set K.
        members: whether `choices` are node slots or edge slots.
    """

    max_choices: int
    members: Literal["nodes", "edges"] = "nodes"

    needs_mask = True
    mask_dims = ("choices",)

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of a place in the set, `[B]`."""
        return Categorical(self.max_choices, shape=(num_envs,), dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(K,)`."""
        return (self.max_choices,)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the filled places, `[*B, K]`."""
        return Choices(self.required_mask(observation))

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample one of the filled places."""
        return sample_allowed(self.required_mask(observation), generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds choose a filled place."""
        return is_allowed(action, self.required_mask(observation))
