"""Mixers: the value of a team from those of its members, such that the best for all is the best of each.

Every mixer is monotone in each value. So the joint action that maximises the value of the team is found by
letting each member take its own best choice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from tensordict import TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.models.features import Features, legal_mean

Counted = Callable[[TensorDictBase], Tensor | None]
"""Returns which deciders exist and act, `[*B, A]` bool; None if all do."""


class Mixer(nn.Module):
    """Base of mixers.

    Args:
        counted: which members of a team count.
    """

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self._counted = counted

    @abstractmethod
    def forward(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the values of teams, `[*B]`, from those of their members, `[*B, A]`."""

    def masked(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the values with zero for members that do not count."""
        counted = self._counted(observation)
        return values if counted is None else values.masked_fill(~counted, 0.0)


class SumMixer(Mixer):
    """The sum of the members' values (VDN, https://arxiv.org/abs/1706.05296)."""

    def forward(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the sums `[*B]`."""
        return self.masked(values, observation).sum(-1)


class MonotoneMixer(Mixer):
    """A network that is monotone in each value, with weights from the state (QMIX).

    As in QMIX (https://arxiv.org/abs/1803.11485), hypernetworks give the weights, and those that multiply
    values are made positive. Here the weights of a member come from its own features, so that the mixer takes
    teams of any size and does not depend on their order.

    Args:
        features: of the deciders; a module of the mixer's own.
        width: of the mixing layer.
        counted: which members of a team count.
    """

    def __init__(self, features: Features, *, width: int = 32, counted: Counted) -> None:
        super().__init__(counted)
        self.features = features
        self.weight = nn.Linear(features.width, width)
        self.bias = nn.Linear(features.width, width)
        self.output = nn.Linear(features.width, width)
        self.offset = nn.Sequential(nn.Linear(features.width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, values: Tensor, observation: TensorDictBase) -> Tensor:
        """Return the mixed values `[*B]`."""
        members = self.features(observation)
        if self.features.per_choice:
            members = legal_mean(members, self.features.legal(observation), dim=-2).squeeze(-2)
        team = legal_mean(members, self._counted(observation), dim=-2).squeeze(-2)
        own = self.masked(values, observation).unsqueeze(-1)
        mixed = functional.elu((own * self.weight(members).abs()).sum(-2) + self.bias(team))
        return (mixed * self.output(team).abs()).sum(-1) + self.offset(team).squeeze(-1)
