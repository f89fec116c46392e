"""Bradley-Terry ratings with intervals, fitted to a whole table of results.

A difference of 400 points is odds of ten to one. Unlike ratings that are updated game by game, the fit does
not depend on the order of the games. A player that never lost would have an infinite rating; so every match
is given one drawn game as a prior: `PRIOR`.

Intervals come from the Bayesian bootstrap (https://doi.org/10.1214/aos/1176345338) over pairs of games and
the prior. A match that one player won throughout therefore still has an interval, which resampling alone
would not give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from edgewise.config.errors import DataError
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.statistics import Interval, Values

POINTS = 400 / math.log(10)
"""Rating points in a natural logarithm of odds."""
ROUNDS, CLOSE = 200, 1e-9
OUTCOMES, PRIOR = np.array([0.0, 0.5, 1.0]), np.array([0.125, 0.25, 0.125])
"""Scores of a pair of games, and the prior number of pairs of each: one game in total."""
EPSILON = 1e-9
"""Drawn scores are clipped to be at least this far from 0 and 1."""

Pairing = tuple[int, int]


@dataclass(frozen=True)
class Rating:
    """The rating of a player relative to the anchor."""

    name: str
    rating: Interval


def fit(points: Values, games: Values) -> Values:
    """Compute the maximum-likelihood log-odds strengths `[*, K]` by Newton's method; their mean is 0.

    Args:
        points: `[*, K, K]`, points of the row against the column.
        games: `[K, K]`, number of games; symmetric, and no player is without a chain of games to another.
    """
    strength = np.zeros(points.shape[:-1])
    won = points.sum(-1)
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(strength[..., None, :] - strength[..., :, None]))
        slope = won - (games * chance).sum(-1)
        weight = games * chance * (1 - chance)
        curvature = weight.sum(-1)[..., None] * np.eye(len(games)) - weight + 1 / len(games)
        step = np.clip(np.linalg.solve(curvature, slope[..., None])[..., 0], -1, 1)
        strength = strength + step
        if np.abs(step).max() < CLOSE:
            break
    return strength - strength.mean(-1, keepdims=True)


def rate(
    names: Sequence[str],
    matches: Mapping[Pairing, Match],
    *,
    anchor: str,
    generator: np.random.Generator,
    draws: int = 500,
) -> list[Rating]:
    """Compute ratings with 95 % intervals over pairs of games; the rating of the anchor is 0.

    Args:
        names: names of the players.
        matches: by the indices of two players in `names`; scores are those of the first.
        anchor: the player whose rating is 0.
        generator: samples the weights of pairs.
        draws: number of bootstrap draws.

    Raises:
        DataError: two players have no games against each other, nor through others: nothing compares them.
    """
    _check_connected(names, matches)
    zero = list(names).index(anchor)
    games = np.zeros((len(names), len(names)))
    mean, drawn = games.copy(), np.zeros((draws, len(names), len(names)))
    for (row, column), match in matches.items():
        games[row, column] = games[column, row] = match.games + 1
        scores = np.concatenate((match.scores, OUTCOMES))
        shape = np.concatenate((np.ones_like(match.scores), PRIOR))
        mean[row, column] = np.average(scores, weights=shape)
        mean[column, row] = 1 - mean[row, column]
        weights = generator.standard_gamma(shape, (draws, len(shape)))
        drawn[:, row, column] = np.clip(weights @ scores / weights.sum(-1), EPSILON, 1 - EPSILON)
        drawn[:, column, row] = 1 - drawn[:, row, column]
    found, spread = (_anchored(fit(games * share, games), zero) for share in (mean, drawn))
    low, high = np.percentile(spread, [2.5, 97.5], axis=0)
    return [
        Rating(name, Interval(float(found[k]), float(low[k]), float(high[k]))) for k, name in enumerate(names)
    ]


def _check_connected(names: Sequence[str], matches: Mapping[Pairing, Match]) -> None:
    played = np.zeros((len(names), len(names)), dtype=bool)
    for pairing in matches:
        played[pairing] = True
    groups, group = connected_components(played, directed=False)
    if groups > 1:
        apart = names[int(np.argmax(group != group[0]))]
        raise DataError(
            f"{names[0]} and {apart} cannot be rated together: no games connect them",
            hint="add a match between their groups, or rate the groups apart",
        )


def expected_scores(ratings: Values) -> Values:
    """Compute the expected score of every row against every column from ratings `[K]`, `[K, K]`."""
    return 1 / (1 + np.exp((ratings[None, :] - ratings[:, None]) / POINTS))


def _anchored(strength: Values, zero: int) -> Values:
    """Return log-odds `[*, K]` as rating points relative to one player."""
    return POINTS * (strength - strength[..., zero : zero + 1])
