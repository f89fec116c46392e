"""A sequential test of whether a new player is better than an old one, valid after every game.

The test is a bet: start with a wealth of 1 and stake a part of it on every score above one half. Against an
equal player the wealth does not grow on average, so the probability that it ever reaches 1 / level is at most
the level (Ville's inequality), however often it is checked. A drawn game leaves the wealth unchanged. See
https://arxiv.org/abs/2010.09686.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LARGEST_STAKE = 1.0
"""Largest share of the wealth per unit of score: a single game costs at most half of the wealth."""


@dataclass
class Gate:
    """A test that accepts a player once its scores are significantly above one half.

    Args:
        level: largest probability of accepting a player that is not better.

    Attributes:
        wealth: the current wealth, 1 at the start.
        accepted: whether the wealth has ever reached 1 / level.

    Example:
        >>> Gate().play([1.0] * 20)
        True
    """

    level: float = 0.05
    wealth: float = 1.0
    accepted: bool = False
    _gain: float = 0.0
    _spread: float = 1.0
    _games: int = 0

    def play(self, scores: Iterable[float]) -> bool:
        """Add scores in [0, 1] in the order of the games, and return whether the player is accepted."""
        for score in scores:
            surplus = score - 0.5
            self.wealth *= 1 + self._stake() * surplus
            self._gain += surplus
            self._spread += surplus * surplus
            self._games += 1
            self.accepted = self.accepted or self.wealth >= 1 / self.level
        return self.accepted

    def _stake(self) -> float:
        """Return the stake of the next game: mean surplus over mean squared surplus so far, clipped at 0."""
        return min(max(self._gain / self._spread, 0.0), LARGEST_STAKE)
