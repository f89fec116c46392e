"""Random games: their mean is the value of random play, in the mover's view, also if a player moves twice."""

from functools import cache

import pytest
import torch
from tensordict import TensorDict
from tests.search.tokens import MOST, TokensConfig, TokensEnv, values

from edgewise.search.mcts import MCTS
from edgewise.search.random_games import play_at_random, random_game_evaluator

GAMES = 4000


@cache
def value_of_random_play(left, bonus):
    """The expected result of the player to move, if both play at random."""
    total = 0.0
    for taken in range(1, min(3, left) + 1):
        rest = value_of_random_play(left - taken, bonus) if taken < left else 0.0
        total += bonus * (taken == 3) + (taken == left) + (rest if left - taken == 5 else -rest)
    return total / min(3, left)


@pytest.mark.parametrize("bonus", [0.0, 0.25])
def test_means_are_those_of_random_play(bonus):
    env = TokensEnv(TokensConfig(bonus=bonus), num_envs=2 * (MOST - 3), seed=0)
    root = env.reset()
    left = torch.arange(4, MOST + 1).repeat(2)
    player = torch.arange(2).repeat_interleave(MOST - 3)
    root["state", "left"], root["state", "player"] = left, player
    root["action_mask"] = env.mask(root["state"])
    evaluate = random_game_evaluator(
        env, games=GAMES, max_steps=MOST, generator=torch.Generator().manual_seed(0)
    )
    prior, value = evaluate(root)
    expected = [value_of_random_play(int(each), bonus) for each in left]
    torch.testing.assert_close(value, torch.tensor(expected), atol=5 / GAMES**0.5, rtol=0.0)
    torch.testing.assert_close(prior, root["action_mask"] / 3.0)


def test_games_end_by_themselves_or_after_the_given_steps():
    env = TokensEnv(TokensConfig(), num_envs=64, seed=0)
    state = TensorDict(dict(env.reset()["state"].items()), [64])
    state["left"][:] = MOST
    assert (play_at_random(env, state, max_steps=MOST).abs() == 1).all()
    assert (play_at_random(env, state, max_steps=2) == 0).all()


def test_states_without_a_move_count_nothing():
    env = TokensEnv(TokensConfig(), num_envs=4, seed=0)
    state = TensorDict(dict(env.reset()["state"].items()), [4])
    state["left"][:] = torch.tensor([0, 1, 0, 1])
    state["player"][:] = torch.tensor([0, 0, 1, 1])
    assert play_at_random(env, state, max_steps=3).tolist() == [0, 1, 0, -1]


def test_tree_search_by_random_games_plays_perfectly():
    env = TokensEnv(TokensConfig(), num_envs=MOST - 3, seed=0)
    root = env.reset()
    left = torch.arange(4, MOST + 1)
    root["state", "left"] = left
    evaluate = random_game_evaluator(env, max_steps=MOST, generator=torch.Generator().manual_seed(0))
    action = MCTS(env, evaluator=evaluate, simulations=300)(root)["action"]
    for taken, tokens in zip(action.tolist(), left.tolist(), strict=True):
        found = values(tokens)
        assert found[taken] == max(found.values())
