"""Action layouts of agents as their networks need them: a number of actions, or a box of unit size."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete


def num_choices(actions: ActionLayout) -> int:
    """Return the number of discrete actions of an agent.

    Raises:
        ConfigError: actions are not discrete.
    """
    if isinstance(actions, AgentsDiscrete):
        return actions.num_actions
    raise ConfigError(
        f"this algorithm needs discrete actions, but they are {type(actions).__name__}",
        hint="use an environment with discrete actions, or sac, ddpg or ac-iqn",
    )


@dataclass(frozen=True)
class ActionBox:
    """Bounds of continuous actions; networks use actions within [-1, 1].

    Args:
        dim: dimensions of an action.
        low: lower bound.
        high: upper bound.

    Example:
        >>> import torch
        >>> ActionBox(2, low=0.0, high=10.0).from_unit(torch.tensor([-1.0, 0.5]))
        tensor([0.0000, 7.5000])
    """

    dim: int
    low: float = -1.0
    high: float = 1.0

    @classmethod
    def of(cls, actions: ActionLayout) -> ActionBox:
        """Return the box of an action layout.

        Raises:
            ConfigError: actions are not continuous.
        """
        if isinstance(actions, AgentsContinuous):
            return cls(actions.dim, actions.low, actions.high)
        raise ConfigError(
            f"this algorithm needs continuous actions, but they are {type(actions).__name__}",
            hint="use an environment with continuous actions, or dqn, iqn or rainbow",
        )

    def from_unit(self, unit: Tensor) -> Tensor:
        """Scale a network's output `[*B, dim]` to the bounds, and clamp it."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return (middle + half * unit).clamp(self.low, self.high)

    def to_unit(self, action: Tensor) -> Tensor:
        """Scale actions `[*B, dim]` to [-1, 1]."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return (action - middle) / half
