"""The same random games by our rules and by OpenSpiel's: legal moves, ends and winners."""

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.systems.hex.baselines import random_player
from edgewise.systems.hex.open_spiel import open_spiel_player

pyspiel = pytest.importorskip("pyspiel", reason="open_spiel is not installed")

POSITIONS = 20_000


def test_random_games_are_the_same_in_open_spiel():
    """OpenSpiel's first player joins top and bottom too, and numbers cells row by row."""
    generator = torch.Generator().manual_seed(0)
    checked = 0
    sizes = range(2, 12)
    while checked < POSITIONS:
        for size in sizes:
            checked += _compare(size, worlds=24, generator=generator)


def _compare(size, *, worlds, generator):
    """Plays some games to their ends and returns how many positions were compared."""
    game = pyspiel.load_game("hex", {"num_rows": size, "num_cols": size})
    theirs = [game.new_initial_state() for _ in range(worlds)]
    env = make_env("hex", size=size, num_envs=worlds, seed=0)
    root, running, checked = env.reset(), list(range(worlds)), 0
    while running:
        legal = root["action_mask"][:, : size * size].int().tolist()
        player = root["player"].tolist()
        for world in running:
            state = theirs[world]
            assert [cell for cell, free in enumerate(legal[world]) if free] == state.legal_actions()
            assert state.current_player() == player[world]
        mask = root["action_mask"].float()
        action = (torch.rand(mask.shape, generator=generator) * mask).argmax(-1)
        following = env.step(root.copy().set("action", action))["next"]
        done, reward = following["done"].flatten().tolist(), following["reward"].flatten().tolist()
        for world in list(running):
            theirs[world].apply_action(int(action[world]))
            assert theirs[world].is_terminal() == done[world]
            if done[world]:
                assert theirs[world].returns()[player[world]] == reward[world] == 1.0
                running.remove(world)
        checked += len(running)
        going_on = ~following["done"].squeeze(-1)
        following = following.exclude("reward")
        root = following.where(going_on, root.select(*following.keys()))
    return checked


def test_its_tree_search_plays_on_our_boards():
    """Boards of different sides in one batch, either player to move."""
    env = make_env("hex", size=(3, 4), opening_plies=(1, 2), num_envs=24, seed=0)
    assert play_match(env, open_spiel_player(env), random_player(env), seed=0).score > 0.9


def test_it_does_not_know_the_swap():
    with pytest.raises(ConfigError, match="no swap"):
        open_spiel_player(make_env("hex", size=3, swap=True))
