"""Ratings of tables that are not connected, and of one that hardly is."""

import numpy as np
import pytest

from edgewise.config.errors import DataError
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import rate


def match(score, pairs=8):
    scores = np.full(pairs, score)
    return Match(scores, scores, np.zeros((2, pairs)))


def rated(names, matches):
    return rate(names, matches, anchor=names[0], generator=np.random.default_rng(0), draws=50)


@pytest.mark.parametrize(
    ("matches", "apart"),
    [({(0, 1): match(0.5)}, "c"), ({(0, 2): match(1.0), (1, 3): match(0.5)}, "b"), ({}, "b")],
)
def test_groups_that_never_met_are_named(matches, apart):
    with pytest.raises(DataError, match=f"a and {apart} cannot be rated together"):
        rated(["a", "b", "c", "d"], matches)


def test_a_chain_of_matches_is_enough():
    found = rated(["a", "b", "c"], {(0, 1): match(0.75), (2, 1): match(0.75)})
    assert found[0].rating.estimate == 0
    assert found[2].rating.estimate == pytest.approx(0, abs=1e-6)
    assert found[1].rating.estimate < -50
