"""Check whether ratings explain the results: matches they predict wrongly, and the Nash mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import OUTCOMES, PRIOR, expected_scores
from edgewise.evaluation.bounds import Values


@dataclass(frozen=True)
class Surprise:
    """A match beside the result that the ratings predict.

    Args:
        row: index of the player whose score it is.
        column: index of the opponent.
        score: the score of the match.
        expected: the score that the ratings predict.
        significant: whether the interval of the score excludes the expected score.
    """

    row: int
    column: int
    score: float
    expected: float
    significant: bool


def surprises(matches: Mapping[tuple[int, int], Match], ratings: Values) -> list[Surprise]:
    """Compare every match with what ratings `[K]` predict, largest difference first."""
    predicted = expected_scores(ratings)
    found = []
    for (row, column), match in matches.items():
        span, expected = match.interval(), float(predicted[row, column])
        outside = not span.low <= expected <= span.high
        found.append(Surprise(row, column, match.score, expected, outside))
    return sorted(found, key=lambda one: -abs(one.score - one.expected))


def nash_weights(scores: Values) -> Values:
    """Compute a mixture of players `[K]` that scores one half or more against each of them.

    If one player beats all others it has all the weight; players that beat each other in a cycle share it.

    Args:
        scores: `[K, K]` in [0, 1], rows against columns, one half on the diagonal.
    """
    count = len(scores)
    # Variables: the weights, and the smallest surplus of the mixture over one half, which is maximised.
    objective = np.append(np.zeros(count), -1.0)
    constraints = np.column_stack((0.5 - scores.T, np.ones(count)))
    found = linprog(
        objective,
        A_ub=constraints,
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, 1)] * count + [(-1, 1)],
    )
    return np.maximum(found.x[:count], 0.0)


def expected_nash_weights(
    matches: Mapping[tuple[int, int], Match],
    count: int,
    *,
    generator: np.random.Generator,
    draws: int = 200,
) -> Values:
    """Compute the mean of `nash_weights` `[K]` over the uncertainty of the scores, by the Bayesian bootstrap.

    The weights of one table of scores are all on the better of two players, however small the difference. Two
    players whose match does not tell them apart share their weight here.

    Args:
        matches: by the indices of two players; scores are those of the first.
        count: number of players K.
        generator: samples the weights of pairs of games.
        draws: number of bootstrap draws.
    """
    drawn = np.full((draws, count, count), 0.5)
    for (row, column), match in matches.items():
        scores = np.concatenate((match.scores, OUTCOMES))
        shape = np.concatenate((np.ones_like(match.scores), PRIOR))
        weights = generator.standard_gamma(shape, (draws, len(shape)))
        drawn[:, row, column] = weights @ scores / weights.sum(-1)
        drawn[:, column, row] = 1 - drawn[:, row, column]
    return np.mean([nash_weights(scores) for scores in drawn], axis=0)
