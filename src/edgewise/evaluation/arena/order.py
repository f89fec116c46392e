"""Whether one number per player tells who beats whom: what ratings foretell wrongly, whom nobody beats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import predicted
from edgewise.evaluation.statistics import Values


@dataclass(frozen=True)
class Surprise:
    """A match that went otherwise than the ratings of the two foretell.

    Args:
        row: place of the player whose scores these are.
        column: place of the other.
        score: what it scored.
        foretold: what its rating promised.
        beyond_chance: whether the interval of the score leaves the promise out.
    """

    row: int
    column: int
    score: float
    foretold: float
    beyond_chance: bool


def surprises(matches: Mapping[tuple[int, int], Match], ratings: Values) -> list[Surprise]:
    """Every match beside what ratings `[K]` foretell, the farthest off first."""
    expected = predicted(ratings)
    found = []
    for (row, column), match in matches.items():
        span, foretold = match.interval(), float(expected[row, column])
        outside = not span.low <= foretold <= span.high
        found.append(Surprise(row, column, match.score, foretold, outside))
    return sorted(found, key=lambda one: -abs(one.score - one.foretold))


def nash_weights(scores: Values) -> Values:
    """A mixture of players `[K]` that scores one half or more against each of them.

    Where strength is one number, the whole weight is on the strongest; in a circle it is shared.

    Args:
        scores: `[K, K]` in [0, 1], rows against columns, one half on the diagonal.
    """
    count = len(scores)
    # Weights and the mixture's worst surplus over one half, which is to be large.
    goal = np.append(np.zeros(count), -1.0)
    against_each = np.column_stack((0.5 - scores.T, np.ones(count)))
    found = linprog(
        goal,
        A_ub=against_each,
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, 1)] * count + [(-1, 1)],
    )
    return np.maximum(found.x[:count], 0.0)
