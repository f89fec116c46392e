"""Ratings of tables that are not connected, and of one that hardly is."""

import numpy as np
import pytest

from edgewise.config.errors import DataError
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import expected_scores, rate


def match(score, pairs=8):
    scores = np.full(pairs, score)
    return Match(scores, scores, np.zeros((2, pairs)))


def rated(names, matches):
    return rate(names, matches, anchor=names[0])


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


@pytest.mark.parametrize("pairs", [1, 8, 50])
def test_a_match_that_was_won_throughout_has_one_drawn_game_added(pairs):
    """Of 2n + 1 games half a point is lost: odds of 4n + 1 to one, and 400 points for each factor of ten."""
    found = rated(["a", "b"], {(0, 1): match(1.0, pairs)})
    assert found[1].rating.estimate == pytest.approx(-400 * np.log10(4 * pairs + 1))


def test_400_points_are_odds_of_ten_to_one():
    found = expected_scores(np.array([0.0, 400.0, 800.0]))
    assert found[1, 0] == pytest.approx(10 / 11)
    assert found[0, 2] == pytest.approx(1 / 101)
