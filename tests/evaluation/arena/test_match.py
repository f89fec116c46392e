"""Matches: seats and openings are paired, equal players are not told apart, who plays is not mixed up."""

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import Match, _play, play_match
from edgewise.systems.hex.baselines import random_player, shortest_way


def first_free(root):
    return root.set("action", root["action_mask"].long().argmax(-1))


def last_free(root):
    mask = root["action_mask"]
    return root.set("action", mask.shape[-1] - 1 - mask.flip(-1).long().argmax(-1))


def test_a_copy_scores_one_half_in_every_pair():
    """Deterministic copies play the same game twice and win it once each."""
    env = make_env("hex", size=4, opening_plies=2, num_envs=64, seed=0)
    found = play_match(env, shortest_way(env), shortest_way(env), seed=3)
    assert (found.scores == 0.5).all()
    interval = found.interval()
    assert interval.low < 0.5 < interval.high


def test_exchanging_players_mirrors_the_score():
    env = make_env("hex", size=4, opening_plies=1, num_envs=64, seed=0)
    one = play_match(env, first_free, last_free, seed=5)
    other = play_match(env, last_free, first_free, seed=5)
    assert np.array_equal(one.as_first, 1 - other.as_second)
    assert np.array_equal(one.as_second, 1 - other.as_first)
    assert np.array_equal(one.plies, other.plies[::-1])


def test_scores_by_hand_on_the_smallest_board():
    """On 2 x 2 these two fill one row each, and a row from left to right is the second player's win."""
    env = make_env("hex", size=2, num_envs=2, seed=0)
    found = play_match(env, first_free, last_free, seed=0)
    assert found.as_first.tolist() == [0.0]  # a1, b2, b1, a2: the lower row is the second player's
    assert found.as_second.tolist() == [1.0]  # b2, a1, a2, b1: so is the upper one here
    assert found.plies.tolist() == [[4.0], [4.0]]


def test_the_clever_player_beats_the_random_one():
    env = make_env("hex", size=5, opening_plies=1, num_envs=128, seed=1)
    found = play_match(env, shortest_way(env), random_player(env), seed=1)
    assert found.score > 0.9
    assert found.interval().low > 0.8


def test_nothing_random_is_touched_outside():
    env = make_env("hex", size=3, opening_plies=1, num_envs=8, seed=1)
    torch.manual_seed(0)
    before, kept = torch.get_rng_state(), env.state_dict()["generator"].clone()
    once = play_match(env, random_player(env), random_player(env), seed=1)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(kept, env.state_dict()["generator"])
    again = play_match(env, random_player(env), random_player(env), seed=1)
    assert np.array_equal(once.scores, again.scores)


def test_intervals_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        games = (generator.random((2, 100)) < 0.7).astype(float)
        interval = Match(games[0], games[1], games).interval()
        held += interval.low <= 0.7 <= interval.high
    assert 0.92 < held / 400 < 0.985


def as_match(pairs):
    """A match of these pairs of scores."""
    first, second = np.array(pairs, dtype=float).T
    return Match(first, second, np.ones((2, len(pairs))))


def test_the_interval_is_over_pairs_of_games():
    """Pairs that are won or lost together say half as much as pairs of independent games."""
    together = as_match([(1, 1), (0, 0)] * 20).interval()
    apart = as_match([(1, 1), (0, 0), (1, 0), (0, 1)] * 10).interval()
    split = as_match([(1, 0), (0, 1)] * 20).interval()
    widths = [one.high - one.low for one in (together, apart, split)]
    assert widths[0] > 1.3 * widths[1] > 1.3 * widths[2] > 0
    assert together.samples == 40


def test_few_pairs_have_no_interval():
    assert not as_match([(1, 1)] * 4).interval().has_bounds
    assert as_match([(1, 1)] * 5).interval().has_bounds


def test_intervals_of_perfect_scores_end_at_the_score():
    for count in range(5, 60):
        won, lost = as_match([(1, 1)] * count).interval(), as_match([(0, 0)] * count).interval()
        assert won.low < won.high == pytest.approx(1.0)
        assert lost.high > lost.low == pytest.approx(0.0)
        assert won.high <= 1.0
        assert lost.low >= 0.0


def test_an_odd_number_of_games_is_refused():
    with pytest.raises(ValueError, match="even number"):
        play_match(make_env("hex", size=3, num_envs=3, seed=0), first_free, last_free, seed=0)


class Drawn:
    """An environment whose games end at once, with a reward for the mover or without."""

    def __init__(self, reward):
        self.reward = reward

    def simulate(self, root):
        ended = torch.ones(*root.batch_size, 1, dtype=torch.bool)
        reward = torch.full((*root.batch_size, 1), self.reward)
        return root.clone().update({"reward": reward, "done": ended})


@pytest.mark.parametrize(("reward", "score"), [(0.0, [0.5, 0.5]), (1.0, [1.0, 0.0]), (-1.0, [0.0, 1.0])])
def test_a_game_without_a_reward_is_drawn(reward, score):
    root = TensorDict({"player": torch.zeros(2, dtype=torch.int64)}, [2])
    players = (lambda seen: seen.set("action", torch.zeros(len(seen), dtype=torch.int64)),) * 2
    found, plies = _play(Drawn(reward), root, seat=torch.tensor([0, 1]), players=players)
    assert found.tolist() == score
    assert plies.tolist() == [1, 1]


class Module(torch.nn.Module):
    """The first free cell; notes whether it was in training mode."""

    def forward(self, root):
        self.was_training = self.training
        return first_free(root)


def test_modules_play_in_evaluation_mode_and_are_put_back():
    policy = Module()
    play_match(make_env("hex", size=2, num_envs=2, seed=0), policy, last_free, seed=0)
    assert policy.training
    assert not policy.was_training
