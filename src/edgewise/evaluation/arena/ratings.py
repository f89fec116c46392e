"""Ratings from a whole table of results: the Bradley-Terry model, fitted at once, with intervals.

A difference of 400 points is odds of ten to one. Unlike ratings that are updated game by game, the fit does
not depend on the order of the games. Results that no one has lost would put a rating at infinity; so every
pair of players that met counts one drawn game more than was played, before any is played: `PRIOR`.

Intervals weigh the pairs of games at random (https://doi.org/10.1214/aos/1176345338), and the game of the
prior with them. So a match that was won throughout, in which resampling would find no spread at all, still
has an interval: as wide as so many won games leave open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.statistics import Interval, Values

POINTS = 400 / math.log(10)
"""Rating points in a natural logarithm of odds."""
ROUNDS, CLOSE = 200, 1e-9
OUTCOMES, PRIOR = np.array([0.0, 0.5, 1.0]), np.array([0.125, 0.25, 0.125])
"""Scores of a pair of games, and how many pairs of each are counted before any is played: one game in all."""
SURE = 1e-9
"""No score is taken to be nearer to none or all than this."""

Pairing = tuple[int, int]


@dataclass(frozen=True)
class Rating:
    """A player's rating beside the anchor's."""

    name: str
    rating: Interval


def fit(points: Values, games: Values) -> Values:
    """The log-odds strengths `[*, K]` of most likelihood, their mean 0, by Newton's method.

    Args:
        points: `[*, K, K]`, what row scored against column.
        games: `[K, K]`, how many games that were; symmetric.
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
    """Ratings with 95 % intervals over pairs of games; the anchor's is 0.

    Args:
        names: of the players.
        matches: by the two players' places in `names`, scores being those of the first.
        anchor: the player whose rating is 0.
        generator: draws the weights of pairs.
        draws: how many ratings an interval is made of.
    """
    zero = list(names).index(anchor)
    games = np.zeros((len(names), len(names)))
    mean, drawn = games.copy(), np.zeros((draws, len(names), len(names)))
    for (row, column), match in matches.items():
        games[row, column] = games[column, row] = match.games + 1
        seen = np.concatenate((match.scores, OUTCOMES))
        shape = np.concatenate((np.ones_like(match.scores), PRIOR))
        mean[row, column] = np.average(seen, weights=shape)
        mean[column, row] = 1 - mean[row, column]
        weights = generator.standard_gamma(shape, (draws, len(shape)))
        drawn[:, row, column] = np.clip(weights @ seen / weights.sum(-1), SURE, 1 - SURE)
        drawn[:, column, row] = 1 - drawn[:, row, column]
    found, spread = (_anchored(fit(games * scores, games), zero) for scores in (mean, drawn))
    low, high = np.percentile(spread, [2.5, 97.5], axis=0)
    return [
        Rating(name, Interval(float(found[k]), float(low[k]), float(high[k]))) for k, name in enumerate(names)
    ]


def predicted(ratings: Values) -> Values:
    """The score that ratings `[K]` foretell of every row against every column, `[K, K]`."""
    return 1 / (1 + np.exp((ratings[None, :] - ratings[:, None]) / POINTS))


def _anchored(strength: Values, zero: int) -> Values:
    """Log-odds `[*, K]` in points beside one player's."""
    return POINTS * (strength - strength[..., zero : zero + 1])
