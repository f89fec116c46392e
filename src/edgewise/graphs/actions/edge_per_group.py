"""Choose one edge of each group of edges, or none."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.graphs.actions.layout import ActionLayout, Choices, is_allowed, sample_allowed
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class ChooseEdgePerGroup(ActionLayout):
    """Choose one edge of each group of edges, or none: action `[*B, num_groups]` int64, 0 for none.

    The first `num_groups * group_size` edge slots are the groups, one after another. The mask is
    `action_mask [*B, num_groups, 1 + group_size]`; its first entry stands for none. The mask of an absent
    group allows only none.

    Args:
        num_groups: number of groups G.
        group_size: edges per group.
    """

    num_groups: int
    group_size: int

    needs_mask = True
    mask_dims = ("groups", None)

    def spec(
        self,
        graph: GraphSpec,  # noqa: ARG002
        *,
        num_envs: int,
        num_edges: int,  # noqa: ARG002
        device: torch.device,
    ) -> TensorSpec:
        """Return the spec of one choice per group, `[B, G]`."""
        shape = (num_envs, self.num_groups)
        return Categorical(1 + self.group_size, shape=shape, dtype=torch.int64, device=device)

    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:  # noqa: ARG002
        """Return `(G, 1 + group_size)`."""
        return (self.num_groups, 1 + self.group_size)

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:  # noqa: ARG002
        """Return the mask `[*B, G, 1 + K]`; groups with an allowed edge count."""
        mask = self.required_mask(observation)
        return Choices(mask, mask[..., 1:].any(-1))

    def sample(
        self,
        observation: TensorDictBase,
        graph: GraphSpec,  # noqa: ARG002
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Sample an allowed edge, or none, for every group."""
        return sample_allowed(self.required_mask(observation), generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:  # noqa: ARG002
        """Return which worlds have an allowed choice in every group."""
        return is_allowed(action, self.required_mask(observation)).all(-1)
