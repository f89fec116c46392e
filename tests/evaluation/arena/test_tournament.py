"""Arena honesty: equals are not told apart, strengths are found again, gates let equals through rarely."""

import numpy as np
import pytest

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.gate import Gate
from edgewise.evaluation.arena.match import Match
from edgewise.evaluation.arena.ratings import POINTS, fit, rate
from edgewise.evaluation.arena.tournament import CrossTable, play_arena
from edgewise.systems.hex.baselines import random_player, shortest_way


def simulated(chance, pairs, generator):
    games = (generator.random((2, pairs)) < chance).astype(float)
    return Match(games[0], games[1], games)


def test_two_copies_differ_by_nothing():
    env = make_env("hex", size=4, opening_plies=2, num_envs=100, seed=0)
    players = {"random": random_player(env), "one": shortest_way(env), "two": shortest_way(env)}
    table = play_arena(env, players, seed=1)
    ratings = {rating.name: rating.rating for rating in table.ratings(anchor="one")}
    assert ratings["two"].low <= 0 <= ratings["two"].high
    assert ratings["random"].high < 0
    assert table.match(1, 2).score == 0.5


def test_copies_that_draw_their_moves_differ_by_no_more_than_chance():
    """The interval over one half holds the truth in about 95 % of matches of equals."""
    env = make_env("hex", size=3, opening_plies=0, num_envs=200, seed=0)
    same = random_player(env)
    holds = 0
    for seed in range(40):
        interval = play_arena(env, {"a": same, "b": same}, seed=seed).match(0, 1).interval()
        holds += interval.low <= 0.5 <= interval.high
    assert holds >= 34


def test_strengths_are_found_again():
    truth = np.array([0.0, 1.0, -0.5, 2.0])
    chance = 1 / (1 + np.exp(truth[None] - truth[:, None]))
    games = 1000.0 * (1 - np.eye(4))
    assert fit(games * chance, games) == pytest.approx(truth - truth.mean(), abs=1e-6)


def test_ten_to_one_is_four_hundred_points():
    odds = np.array([[0.0, 10.0], [1.0, 0.0]])
    strength = fit(odds, odds + odds.T)
    assert POINTS * (strength[0] - strength[1]) == pytest.approx(400)


def test_ratings_are_anchored_and_their_intervals_hold():
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(40):
        matches = {(0, 1): simulated(0.3, 100, generator)}
        random, good = rate(("random", "good"), matches, anchor="random")
        assert random.rating.estimate == 0
        held += good.rating.low <= POINTS * np.log(0.7 / 0.3) <= good.rating.high
    assert held >= 34


@pytest.mark.parametrize("chance", [0.5, 0.9, 0.99])
def test_intervals_hold_near_perfect_scores_too(chance):
    """At 0.99 most matches of 50 games are won throughout; their intervals must still hold the truth."""
    generator = np.random.default_rng(2)
    truth, held, widths = POINTS * np.log(chance / (1 - chance)), 0, []
    for _ in range(200):
        matches = {(0, 1): simulated(chance, 25, generator)}
        rating = rate(("a", "b"), matches, anchor="b")[0].rating
        held += rating.low <= truth <= rating.high
        widths.append(rating.high - rating.low)
    assert held >= 180
    assert min(widths) > 50


def test_perfect_scores_have_finite_ratings_and_intervals_that_narrow_from_below():
    generator = np.random.default_rng(0)
    few, many = (
        rate(("a", "b"), {(0, 1): simulated(1.1, pairs, generator)}, anchor="b")[0] for pairs in (50, 500)
    )
    few, many = few.rating, many.rating
    assert 400 < few.estimate < many.estimate < 2000
    assert 400 < few.low < few.estimate < few.high == np.inf
    assert few.low + 200 < many.low


def test_the_interval_of_two_players_is_that_of_wilson():
    """Sixty of a hundred independent games: the odds at both ends of Wilson's interval of the score."""
    scores = np.array([1.0] * 20 + [0.5] * 20 + [0.0] * 10)
    found = rate(("a", "b"), {(0, 1): Match(scores, scores, np.ones((2, 50)))}, anchor="b")[0].rating
    z, score, games = 1.959964, 0.6, 100
    spread = max(1.0, (scores.var(ddof=0) * 50 + 0.25) / (49 * 0.24 / 2 + 0.25))
    z *= np.sqrt(spread)
    centre = (score + z * z / (2 * games)) / (1 + z * z / games)
    half = z / (1 + z * z / games) * np.sqrt(score * (1 - score) / games + z * z / (4 * games * games))
    ends = np.array([centre - half, centre + half])
    assert (found.low, found.high) == pytest.approx(tuple(POINTS * np.log(ends / (1 - ends))), rel=1e-3)
    assert found.samples == 50


def test_the_anchor_has_no_interval():
    generator = np.random.default_rng(0)
    anchor = rate(("a", "b"), {(0, 1): simulated(0.5, 20, generator)}, anchor="a")[0].rating
    assert anchor.estimate == 0
    assert not anchor.has_bounds


def test_a_circle_of_players_is_shown():
    generator = np.random.default_rng(0)
    matches = {
        (0, 1): simulated(0.8, 50, generator),
        (1, 2): simulated(0.8, 50, generator),
        (0, 2): simulated(0.2, 50, generator),
    }
    assert CrossTable(("rock", "scissors", "paper"), matches).cycles() == [("rock", "scissors", "paper")]
    matches[0, 2] = simulated(0.9, 50, generator)
    assert CrossTable(("rock", "scissors", "paper"), matches).cycles() == []


def test_a_table_seen_from_the_other_side_is_mirrored():
    match = simulated(0.7, 20, np.random.default_rng(0))
    table = CrossTable(("a", "b"), {(0, 1): match})
    assert table.match(1, 0).score == pytest.approx(1 - match.score)
    assert table.scores()[0][0] is None


def accepted(generator, *, trials, games, win, draw):
    """In how many trials a gate lets a player through that wins and draws so often."""
    count = 0
    for _ in range(trials):
        drawn = generator.random(games)
        scores = np.where(drawn < win, 1.0, np.where(drawn < win + draw, 0.5, 0.0))
        count += Gate().play(scores)
    return count


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.8])
def test_an_equal_player_passes_in_at_most_five_of_a_hundred(draw):
    generator = np.random.default_rng(7)
    passed = accepted(generator, trials=200, games=400, win=(1 - draw) / 2, draw=draw)
    assert passed <= 10


def test_a_fixed_threshold_would_let_far_more_equals_through():
    """The gate that this one replaces: 55 of 100 points, looked at after every batch of 50 games."""
    generator = np.random.default_rng(7)
    passed = 0
    for _ in range(200):
        scores = (generator.random(400) < 0.5).astype(float)
        passed += any(scores[:count].mean() >= 0.55 for count in range(50, 401, 50))
    assert passed > 40


def test_a_better_player_passes():
    generator = np.random.default_rng(3)
    assert accepted(generator, trials=50, games=400, win=0.65, draw=0.0) >= 45
    assert accepted(generator, trials=50, games=400, win=0.25, draw=0.7) >= 45


def test_a_worse_player_does_not():
    assert accepted(np.random.default_rng(3), trials=100, games=400, win=0.4, draw=0.0) == 0


@pytest.mark.parametrize(("won", "pairs"), [(7, 10), (10, 10), (0, 4)])
def test_a_rating_is_the_odds_with_one_drawn_game_added(won, pairs):
    scores = np.array([1.0] * won + [0.0] * (pairs - won))
    match = Match(scores, scores, np.ones((2, pairs)))
    first, second = rate(("a", "b"), {(0, 1): match}, anchor="b")
    points = 2 * won + 0.5
    assert first.rating.estimate == pytest.approx(POINTS * np.log(points / (2 * pairs + 1 - points)))
    assert second.rating.estimate == 0


def test_a_game_weighs_as_much_in_a_long_match_as_in_a_short_one():
    """Three players: the middle one is tied to the others by matches of different length."""
    long, short = np.array([1.0, 1.0, 0.0] * 30), np.array([1.0, 0.0, 0.0])
    matches = {
        (0, 1): Match(long, long, long),
        (1, 2): Match(short, short, short),
        (0, 2): Match(short, short, short),
    }
    found = rate(("a", "b", "c"), matches, anchor="c")
    games, points = np.zeros((3, 3)), np.zeros((3, 3))
    for (row, column), match in matches.items():
        games[row, column] = games[column, row] = 2 * len(match.as_first) + 1
        points[row, column] = 2 * match.as_first.sum() + 0.5
        points[column, row] = games[row, column] - points[row, column]
    strength = POINTS * fit(points, games)
    assert [one.rating.estimate for one in found] == pytest.approx(list(strength - strength[2]))


def test_a_player_that_was_accepted_stays_accepted():
    gate = Gate()
    assert gate.play([1.0] * 20)
    assert gate.play([0.0] * 200)
    assert gate.wealth < 1


def test_the_wealth_is_that_of_the_bets_by_hand():
    """Stakes: 0, then .5 / 1.25, 1 / 1.5, 1.5 / 1.75; after four lost games none is left to stake."""
    gate, wealth = Gate(), 1.0
    for score, stake in ((1.0, 0.0), (1.0, 0.5 / 1.25), (1.0, 1 / 1.5), (0.0, 1.5 / 1.75), (0.5, 1 / 2)):
        gate.play([score])
        wealth *= 1 + stake * (score - 0.5)
        assert gate.wealth == pytest.approx(wealth)
    gate.play([0.0] * 4)
    before = gate.wealth
    gate.play([0.0])
    assert gate.wealth == before


def test_a_match_seen_from_the_other_side_has_the_seats_exchanged():
    match = Match(np.array([1.0, 1.0]), np.array([0.0, 0.5]), np.array([[3.0, 3.0], [7.0, 9.0]]))
    other = CrossTable(("a", "b"), {(0, 1): match}).match(1, 0)
    assert other.as_first.tolist() == [1.0, 0.5]
    assert other.as_second.tolist() == [0.0, 0.0]
    assert other.plies.tolist() == [[7.0, 9.0], [3.0, 3.0]]


def test_draws_are_no_circle():
    drawn = Match(np.full(20, 0.5), np.full(20, 0.5), np.ones((2, 20)))
    matches = dict.fromkeys([(0, 1), (0, 2), (1, 2)], drawn)
    assert CrossTable(("a", "b", "c"), matches).cycles() == []


def test_draws_and_intervals_are_given_for_every_pair():
    match = Match(np.array([1.0, 0.5] * 4), np.array([0.5, 0.5] * 4), np.ones((2, 8)))
    other = Match(np.array([1.0, 1.0]), np.array([0.0, 0.5]), np.ones((2, 2)))
    found = CrossTable(("a", "b", "c"), {(0, 1): match, (0, 2): other, (1, 2): other})
    assert found.draws() == [[None, 0.75, 0.25], [0.75, None, 0.25], [0.25, 0.25, None]]
    low, high = found.intervals()[0][1]
    assert (low, high) == (match.interval().low, match.interval().high)
    assert found.intervals()[1][0] == pytest.approx((1 - high, 1 - low))
    assert found.intervals()[2][2] is None
    assert found.intervals()[2][0] is None, "two pairs tell no interval"
