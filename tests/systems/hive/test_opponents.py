"""Opponents by scheme: tree search with random games, and OpenSpiel's search, which replays every game."""

import pytest

from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_env
from edgewise.experiments.opponents import make_opponent, needed_settings
from edgewise.plugins import environment
from edgewise.systems.hive import opponents
from edgewise.systems.hive.notation import Hive, write_tile
from edgewise.systems.hive.open_spiel import _first_in_hand

ENTRY = environment("hive")


def test_tree_search_plays_legal_moves(monkeypatch):
    monkeypatch.setattr(opponents, "RANDOM_PLIES", 2)
    env = make_env("hive", hand="QAAGB", num_envs=2, seed=0, opening_plies=3)
    root = make_opponent(ENTRY, env, "mcts:3")(env.reset())
    assert root["action_mask"].gather(1, root["action"].unsqueeze(-1)).all()


@pytest.mark.parametrize("name", ["mcts:0", "mcts:", "mcts:x"])
def test_a_number_of_simulations_is_needed(name):
    with pytest.raises(ConfigError, match="expected mcts:N"):
        make_opponent(ENTRY, make_env("hive", hand="QAAGB"), name)


def test_open_spiel_follows_our_games():
    """After random plies with beetles on tiles and equal tiles in hand, its answer is a legal move."""
    pytest.importorskip("pyspiel")
    env = make_env("hive", num_envs=2, seed=0, opening_plies=(0, 16), keep_moves=True)
    policy = make_opponent(ENTRY, env, "open_spiel:mcts:2")
    root = env.reset()
    for _ in range(2):
        action = policy(root)["action"]
        assert root["action_mask"].gather(1, action.unsqueeze(-1)).all()
        root = env.step(root)["next"].exclude("reward")
    assert needed_settings(ENTRY, ["open_spiel:mcts:2"]) == {"keep_moves": True}


def test_open_spiel_has_one_hand():
    pytest.importorskip("pyspiel")
    with pytest.raises(ConfigError, match="only the hand"):
        make_opponent(ENTRY, make_env("hive", hand="QAAGB"), "open_spiel:mcts:2")
    with pytest.raises(ConfigError, match="expected open_spiel:mcts:N"):
        make_opponent(ENTRY, make_env("hive"), "open_spiel:uct:2")


def test_equal_tiles_in_hand_are_the_first_of_them():
    env = make_env("hive", num_envs=1)
    hand = env.hand
    ants = [slot for slot in range(hand.tiles) if write_tile(slot, hand).startswith("bA")]
    hive = Hive(hand, {(0, 0): [ants[0]]}, [])
    assert _first_in_hand(ants[2], hive) == ants[1]
    assert _first_in_hand(ants[1], Hive(hand, {}, [])) == ants[0]
