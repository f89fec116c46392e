"""What robots can do, as networks over their views see it: a number of choices, or a box of unit size."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete


def num_choices(actions: ActionLayout) -> int:
    """How many choices a robot has; a ConfigError where actions are no choices."""
    if isinstance(actions, AgentsDiscrete):
        return actions.num_actions
    raise ConfigError(
        f"this algorithm values choices, but actions are {type(actions).__name__}",
        hint="use an environment with discrete actions, or sac, ddpg or ac-iqn",
    )


@dataclass(frozen=True)
class ActionBox:
    """Continuous actions within bounds; networks see them within -1 and 1.

    Args:
        dim: numbers in an action.
        low: their lower bound.
        high: their upper bound.
    """

    dim: int
    low: float = -1.0
    high: float = 1.0

    @classmethod
    def of(cls, actions: ActionLayout) -> ActionBox:
        """The box of a layout; a ConfigError where actions are not continuous."""
        if isinstance(actions, AgentsContinuous):
            return cls(actions.dim, actions.low, actions.high)
        raise ConfigError(
            f"this algorithm needs continuous actions, but they are {type(actions).__name__}",
            hint="use an environment with continuous actions, or dqn, iqn or rainbow",
        )

    def outward(self, unit: Tensor) -> Tensor:
        """An action `[*B, dim]` from what a network gives, cut off at the bounds."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return (middle + half * unit).clamp(self.low, self.high)

    def inward(self, action: Tensor) -> Tensor:
        """What a network sees of an action `[*B, dim]`."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return (action - middle) / half
