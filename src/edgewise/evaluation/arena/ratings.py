"""Bradley-Terry ratings with intervals, fitted to a whole table of results.

A difference of 400 points is odds of ten to one. Unlike ratings that are updated game by game, the fit does
not depend on the order of the games. A player that never lost would have an infinite rating; so every match
is given one drawn game as a prior: `PRIOR`.

An interval holds every rating that a score test does not reject, with all other ratings fitted to it. For two
players it is Wilson's interval of their score. A player that won all its games has no upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from edgewise.config.errors import DataError
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.bounds import Values
from edgewise.evaluation.statistics import LEVEL, Interval

POINTS = 400 / math.log(10)
"""Rating points in a natural logarithm of odds."""
ROUNDS, CLOSE = 200, 1e-9
OUTCOMES, PRIOR = np.array([0.0, 0.5, 1.0]), np.array([0.125, 0.25, 0.125])
"""Scores of a pair of games, and the prior number of pairs of each: one game in total."""
SLIGHT = 1e-6
"""Drawn games that are added to each match in tests of a rating, so that every fit is finite."""
FARTHEST, HALVINGS = 12.0, 40
"""Largest log-odds at which a bound is looked for, and bisections of it."""

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
    names: Sequence[str], matches: Mapping[Pairing, Match], *, anchor: str, level: float = LEVEL
) -> list[Rating]:
    """Compute ratings with intervals over pairs of games; the rating of the anchor is 0.

    Args:
        names: names of the players.
        matches: by the indices of two players in `names`; scores are those of the first.
        anchor: the player whose rating is 0 by definition, so that it has no interval.
        level: confidence level.

    Raises:
        DataError: two players have no games against each other, nor through others: nothing compares them.
    """
    _check_connected(names, matches)
    zero, count = list(names).index(anchor), len(names)
    games, points, prior = (np.zeros((count, count)) for _ in range(3))
    for (row, column), match in matches.items():
        games[row, column] = games[column, row] = match.games
        prior[row, column] = prior[column, row] = 1.0
        points[row, column], points[column, row] = match.games * match.score, match.games * (1 - match.score)
    found = _anchored(fit(points + prior / 2, games + prior), zero)
    others = [player for player in range(count) if player != zero]
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    low[others], high[others] = rating_bounds(
        points + SLIGHT * prior / 2,
        games + SLIGHT * prior,
        players=np.array(others),
        zero=zero,
        dispersion=_dispersion(matches.values()),
        level=level,
    )
    pairs = [sum(len(one.scores) for pairing, one in matches.items() if k in pairing) for k in range(count)]
    return [
        Rating(name, Interval(float(found[k]), float(low[k]), float(high[k]), pairs[k], level))
        for k, name in enumerate(names)
    ]


def rating_bounds(
    points: Values, games: Values, *, players: Values, zero: int, dispersion: float, level: float = LEVEL
) -> tuple[Values, Values]:
    """Compute bounds of ratings relative to player `zero`, `[P]` each; infinite where nothing bounds them.

    Args:
        points: `[K, K]`, points of the row against the column.
        games: `[K, K]`, number of games, as in `fit`.
        players: indices `[P]` of the players whose ratings are bounded.
        zero: index of the player they are relative to.
        dispersion: variance of the results over that of independent games.
        level: confidence level.
    """
    limit = float(ndtri((1 + level) / 2)) * math.sqrt(dispersion)
    target = np.concatenate((np.full(len(players), limit), np.full(len(players), -limit)))
    tested = np.concatenate((players, players)).astype(int)
    low, high = np.full(len(tested), -FARTHEST), np.full(len(tested), FARTHEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = _score_test(points, games, tested, zero, middle) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ends = np.where(np.abs(low + high) / 2 > FARTHEST - 0.1, np.sign(low + high) * np.inf, (low + high) / 2)
    return POINTS * ends[: len(players)], POINTS * ends[len(players) :]


def _score_test(points: Values, games: Values, tested: Values, zero: int, value: Values) -> Values:
    """Compute the studentised score of each tested player `[T]` if its log-odds to `zero` were `value` `[T]`.

    It falls with the value. All other players are fitted to the value.
    """
    rows, count = np.arange(len(tested)), len(games)
    fixed = np.zeros((len(tested), count), dtype=bool)
    fixed[rows, tested] = fixed[:, zero] = True
    strength = np.zeros((len(tested), count))
    strength[rows, tested] = value
    held, won = fixed[..., None] | fixed[..., None, :], points.sum(-1)
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(np.clip(strength[..., None, :] - strength[..., :, None], -50, 50)))
        slope, weight = won - (games * chance).sum(-1), games * chance * (1 - chance)
        curvature = weight.sum(-1)[..., None] * np.eye(count) - weight
        free = np.where(held, np.eye(count), curvature)
        step = np.clip(np.linalg.solve(free, np.where(fixed, 0, slope)[..., None])[..., 0], -1, 1)
        strength = strength + step
        if np.abs(step).max() < CLOSE:
            break
    curvature[:, zero, :] = curvature[:, :, zero] = 0.0
    curvature[:, zero, zero] = 1.0
    variance = np.linalg.inv(curvature)[rows, tested, tested]
    scores: Values = slope[rows, tested] * np.sqrt(np.maximum(variance, 0.0))
    return scores


def _dispersion(matches: Iterable[Match]) -> float:
    """Estimate how much more pairs of games vary than independent games: 1 to 2, shrunk by two even pairs."""
    spread, fair = 0.25, 0.25
    for match in matches:
        score = match.score
        spread += float(((match.scores - score) ** 2).sum())
        fair += (len(match.scores) - 1) * score * (1 - score) / 2
    return min(max(spread / fair, 1.0), 2.0)


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
