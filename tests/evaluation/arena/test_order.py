"""Circles among players: shared weights, and matches that no rating could have foretold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.arena.test_tournament import simulated

from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.order import expected_nash_weights, nash_weights, surprises
from edgewise.evaluation.arena.ratings import POINTS, expected_scores


def test_rock_scissors_and_paper_share_alike():
    scores = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])
    assert nash_weights(scores) == pytest.approx(np.full(3, 1 / 3))


def test_the_strongest_takes_all_where_strength_is_one_number():
    scores = expected_scores(np.array([0.0, 120.0, 300.0, -40.0]))
    assert nash_weights(scores) == pytest.approx(np.array([0.0, 0.0, 1.0, 0.0]))


@given(st.integers(1, 6), st.integers(0, 1000))
def test_the_mixture_is_beaten_by_nobody(count, seed):
    drawn = np.random.default_rng(seed).random((count, count))
    scores = (drawn + 1 - drawn.T) / 2
    weights = nash_weights(scores)
    assert weights.sum() == pytest.approx(1)
    assert (weights @ scores).min() >= 0.5 - 1e-7


def test_a_circle_surprises_and_a_ladder_does_not():
    generator = np.random.default_rng(0)
    circle = {(0, 1): 0.8, (1, 2): 0.8, (0, 2): 0.2}
    matches = {pair: simulated(chance, 200, generator) for pair, chance in circle.items()}
    found = surprises(matches, np.zeros(3))
    assert all(one.significant for one in found)
    ratings = np.array([0.0, 100.0, 250.0])
    surprised = 0
    for _ in range(40):
        ladder = {pair: simulated(expected_scores(ratings)[pair], 200, generator) for pair in circle}
        surprised += sum(one.significant for one in surprises(ladder, ratings))
    assert surprised <= 0.1 * 40 * 3


def test_what_is_foretold_is_the_odds_of_the_difference():
    assert expected_scores(np.array([400.0, 0.0]))[0, 1] == pytest.approx(10 / 11)
    assert expected_scores(np.array([POINTS, 0.0]))[1, 0] == pytest.approx(1 / (1 + np.e))


def test_players_that_cannot_be_told_apart_share_the_weight():
    """One table of scores would give all of it to the player with half a point more."""
    generator = np.random.default_rng(0)
    matches = {
        (0, 1): Match(np.array([1.0, 0.5, 1.0, 0.0]), np.array([0.0, 0.5, 0.0, 1.0]), np.zeros((2, 4))),
        (0, 2): simulated(0.95, 200, generator),
        (1, 2): simulated(0.95, 200, generator),
    }
    weights = expected_nash_weights(matches, 3, generator=np.random.default_rng(1))
    assert weights.sum() == pytest.approx(1)
    assert weights[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    single = np.array([[0.5, 0.51, 0.95], [0.49, 0.5, 0.95], [0.05, 0.05, 0.5]])
    assert nash_weights(single) == pytest.approx([1.0, 0.0, 0.0])


def test_the_clearly_better_player_keeps_all_the_weight():
    matches = {(0, 1): simulated(0.8, 200, np.random.default_rng(0))}
    assert expected_nash_weights(matches, 2, generator=np.random.default_rng(1))[0] > 0.99


def test_a_circle_keeps_its_shares():
    generator = np.random.default_rng(0)
    circle = {(0, 1): 0.8, (1, 2): 0.8, (0, 2): 0.2}
    matches = {pair: simulated(chance, 400, generator) for pair, chance in circle.items()}
    found = expected_nash_weights(matches, 3, generator=generator)
    assert found == pytest.approx(np.full(3, 1 / 3), abs=0.1)


def test_the_largest_surprise_comes_first():
    generator = np.random.default_rng(0)
    chances = {(0, 1): 0.6, (1, 2): 0.95, (0, 2): 0.75}
    found = surprises(
        {pair: simulated(chance, 400, generator) for pair, chance in chances.items()}, np.zeros(3)
    )
    assert [(one.row, one.column) for one in found] == [(1, 2), (0, 2), (0, 1)]
