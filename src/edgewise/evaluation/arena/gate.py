"""Whether a new player is better than an old one, asked after every game as long as one likes.

The question is a bet: start with a wealth of 1 and stake a part of it on every score above one half. Against
an equal player no stakes grow it on average, so the chance that it ever reaches 1 / level is at most the
level (Ville's inequality), however often one looks and whatever share of games is drawn: a draw moves
nothing. See https://arxiv.org/abs/2010.09686.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LARGEST_STAKE = 1.0
"""Of the wealth per unit of score: no single game can cost more than half of it."""


@dataclass
class Gate:
    """Bets on a player's scores, and accepts it once the wealth says so.

    Args:
        level: largest chance to accept a player that is not better.

    Attributes:
        wealth: what the bets have made of 1.
        accepted: whether the wealth has ever been enough.

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
        """Take in scores in [0, 1] in the order of the games, and say whether the player is accepted."""
        for score in scores:
            surplus = score - 0.5
            self.wealth *= 1 + self._stake() * surplus
            self._gain += surplus
            self._spread += surplus * surplus
            self._games += 1
            self.accepted = self.accepted or self.wealth >= 1 / self.level
        return self.accepted

    def _stake(self) -> float:
        """What the games so far advise: their mean surplus over its mean square, never on losing."""
        return min(max(self._gain / self._spread, 0.0), LARGEST_STAKE)
