"""Ratings from a whole table of results: the Bradley-Terry model, fitted at once, with intervals.

A difference of 400 points is odds of ten to one. Unlike ratings that are updated game by game, the fit does
not depend on the order of the games. Results that no one has lost would put a rating at infinity; so every
pair of players that met counts one drawn game more than was played.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgewise.evaluation.match import Match
from edgewise.evaluation.statistics import Interval, Values

POINTS = 400 / math.log(10)
"""Rating points in a natural logarithm of odds."""
ROUNDS, CLOSE = 200, 1e-9

Pairing = tuple[int, int]


@dataclass(frozen=True)
class Rating:
    """A player's rating beside the anchor's."""

    name: str
    rating: Interval


def fit(points: Values, games: Values) -> Values:
    """The log-odds strengths `[K]` of most likelihood, their mean 0, by Newton's method.

    Args:
        points: `[K, K]`, what row scored against column.
        games: `[K, K]`, how many games that were; symmetric.
    """
    strength = np.zeros(len(points))
    won = points.sum(1)
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))
        slope = won - (games * chance).sum(1)
        weight = games * chance * (1 - chance)
        curvature = np.diag(weight.sum(1)) - weight + 1 / len(points)
        step = np.clip(np.linalg.solve(curvature, slope), -1, 1)
        strength = strength + step
        if np.abs(step).max() < CLOSE:
            break
    return strength - strength.mean()


def rate(
    names: Sequence[str],
    matches: Mapping[Pairing, Match],
    *,
    anchor: str,
    generator: np.random.Generator,
    resamples: int = 500,
) -> list[Rating]:
    """Ratings with 95 % bootstrap intervals over pairs of games; the anchor's is 0.

    Args:
        names: of the players.
        matches: by the two players' places in `names`, scores being those of the first.
        anchor: the player whose rating is 0.
        generator: draws the resamples.
        resamples: how many.
    """
    zero = list(names).index(anchor)
    plain = {pairing: match.scores for pairing, match in matches.items()}
    found = _ratings(plain, len(names), zero)
    drawn = np.stack(
        [
            _ratings(
                {pair: generator.choice(values, len(values)) for pair, values in plain.items()},
                len(names),
                zero,
            )
            for _ in range(resamples)
        ]
    )
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return [
        Rating(name, Interval(float(found[k]), float(low[k]), float(high[k]))) for k, name in enumerate(names)
    ]


def _ratings(scores: Mapping[Pairing, Values], count: int, zero: int) -> Values:
    """Ratings in points, `[K]`, from the scores of pairs of games."""
    points, games = np.zeros((count, count)), np.zeros((count, count))
    for (row, column), values in scores.items():
        played = 2 * len(values)
        points[row, column] += 2 * values.sum() + 0.5
        points[column, row] += played - 2 * values.sum() + 0.5
        games[row, column] += played + 1
        games[column, row] += played + 1
    strength = fit(points, games)
    return POINTS * (strength - strength[zero])
