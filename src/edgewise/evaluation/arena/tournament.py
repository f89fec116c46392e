"""Play every player against every other; the cross table, ratings from it, and checks of the ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.evaluation.arena.match import Match, play_match
from edgewise.evaluation.arena.order import Surprise, expected_nash_weights, surprises
from edgewise.evaluation.arena.ratings import Rating, rate
from edgewise.evaluation.bounds import Values

Progress = Callable[[str, str], None]
"""Called with the two names before each match."""


@dataclass(frozen=True)
class CrossTable:
    """All matches of an arena.

    Args:
        names: names of the players.
        matches: by indices in `names`, lower first; scores are those of the lower.
    """

    names: tuple[str, ...]
    matches: Mapping[tuple[int, int], Match]

    def match(self, row: int, column: int) -> Match:
        """Return the match of two players, with the scores of `row`."""
        if (row, column) in self.matches:
            return self.matches[row, column]
        other = self.matches[column, row]
        return Match(1 - other.as_second, 1 - other.as_first, other.plies[::-1])

    def scores(self) -> list[list[float | None]]:
        """Return the score of every row against every column; None on the diagonal."""
        places = range(len(self.names))
        return [[None if i == j else self.match(i, j).score for j in places] for i in places]

    def draws(self) -> list[list[float | None]]:
        """Return the share of drawn games between every row and every column; None on the diagonal."""
        places = range(len(self.names))
        return [[None if i == j else self.match(i, j).draws for j in places] for i in places]

    def intervals(self) -> list[list[tuple[float, float] | None]]:
        """Return the 95 % interval of every score; None on the diagonal and where pairs are too few."""
        places = range(len(self.names))
        found = [[None if i == j else self.match(i, j).interval() for j in places] for i in places]
        return [
            [None if one is None or not one.has_bounds else (one.low, one.high) for one in row]
            for row in found
        ]

    def cycles(self) -> list[tuple[str, str, str]]:
        """Return triples in which the first beats the second, the second the third, and the third the first.

        A player beats another if the interval of its score lies above one half.
        """
        beats = {
            (i, j)
            for i in range(len(self.names))
            for j in range(len(self.names))
            if i != j and self.match(i, j).interval().low > 0.5
        }
        return [
            (self.names[a], self.names[b], self.names[c])
            for a, b in sorted(beats)
            for c in range(len(self.names))
            if a < min(b, c) and (b, c) in beats and (c, a) in beats
        ]

    def nash(self, *, seed: int = 0) -> Values:
        """Compute the mixture of players `[K]` that none of them beats: see `expected_nash_weights`."""
        generator = np.random.default_rng(seed)
        return expected_nash_weights(self.matches, len(self.names), generator=generator)

    def surprises(self, ratings: Sequence[Rating]) -> list[Surprise]:
        """Return matches that differ significantly from the ratings' prediction, largest first."""
        found = surprises(self.matches, np.array([one.rating.estimate for one in ratings]))
        return [one for one in found if one.significant]

    def ratings(self, *, anchor: str) -> list[Rating]:
        """Compute Bradley-Terry ratings relative to the anchor."""
        return rate(self.names, self.matches, anchor=anchor)


def play_arena(
    env: GraphEnv[Any],
    players: Mapping[str, Policy],
    *,
    seed: int,
    deterministic: bool = True,
    progress: Progress | None = None,
) -> CrossTable:
    """Play every player against every other from the same openings, each opening from both seats.

    Args:
        env: one world for each game of a match; it should have random openings.
        players: policies by name.
        seed: seed of the openings.
        deterministic: whether players act by their mode.
        progress: called before each match.
    """
    names = tuple(players)
    matches = {}
    for one, other in combinations(range(len(names)), 2):
        if progress is not None:
            progress(names[one], names[other])
        matches[one, other] = play_match(
            env, players[names[one]], players[names[other]], seed=seed, deterministic=deterministic
        )
    return CrossTable(names, matches)
