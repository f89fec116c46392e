"""Engines over UHP: a match against a plain-Python engine, engines that fail, and game strings."""

import sys

import pytest
import torch

from edgewise.config.errors import ConfigError, DataError
from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.experiments.opponents import make_opponent, needed_settings
from edgewise.plugins import environment
from edgewise.systems.hive import uhp
from edgewise.systems.hive.baselines import random_player
from edgewise.systems.hive.game_file import read_game, read_type, write_game
from edgewise.systems.hive.notation import write_tile
from edgewise.systems.hive.pieces import Hand
from edgewise.systems.hive.uhp import Engine, played_moves, uhp_player

ENGINE = f"{sys.executable} -m tests.systems.hive.uhp_engine"


def test_an_engine_plays_whole_games_of_all_expansions():
    """The engine asserts that every move it is told is legal by the plain-Python rules."""
    env = make_env(
        "hive", expansions="MLP", num_envs=2, seed=0, opening_plies=6, max_steps=14, keep_moves=True
    )
    match = play_match(env, uhp_player(env, ENGINE), random_player(env), seed=0)
    assert match.games == 2
    assert match.plies.min() >= 1


def test_the_moves_of_a_state_lead_to_its_position():
    env = make_env("hive", hand="QAAGB", num_envs=3, seed=1, opening_plies=(0, 5), keep_moves=True)
    torch.manual_seed(0)
    root = env.reset()
    for _ in range(20):
        _, root = env.step_and_maybe_reset(env.rand_action(root))
    for game in range(3):
        state = root["state"][game : game + 1]
        moves = played_moves(state, env.hand)
        assert len(moves) == int(state["plies"]) > 0
        again = read_game(write_game(env.hand, moves, "InProgress"))
        assert again.moves == tuple(moves)
        assert all(
            torch.equal(again.position[name], state[name]) for name in ("q", "r", "level", "player", "last")
        )


@pytest.mark.parametrize(
    ("fault", "complaint"), [("illegal", "no tile"), ("dies", "ended"), ("silent", "did not answer")]
)
def test_an_engine_that_fails_is_an_error_in_words(monkeypatch, fault, complaint):
    monkeypatch.setattr(uhp, "TIMEOUT", 2.0)
    env = make_env("hive", num_envs=1, seed=0, keep_moves=True)
    policy = uhp_player(env, f"{ENGINE} {fault}")
    with pytest.raises(DataError, match=complaint):
        policy(env.reset())


def test_a_game_that_the_engine_does_not_know_is_said():
    env = make_env("hive", hand="QAAGB", num_envs=1, seed=0, keep_moves=True)
    with pytest.raises(DataError, match="QBGAA is no type"):
        uhp_player(env, ENGINE)(env.reset())


@pytest.mark.parametrize("command", ["/no/such/engine", "", "'"])
def test_an_engine_that_cannot_start_is_said(command):
    with pytest.raises(DataError, match="cannot be started"):
        Engine(command)


def test_opponents_are_found_by_their_scheme():
    entry = environment("hive")
    assert needed_settings(entry, ["random", f"uhp:{ENGINE}"]) == {"keep_moves": True}
    assert needed_settings(entry, ["random"]) == {}
    env = make_env("hive", num_envs=1)
    with pytest.raises(ConfigError, match="no player wizard"):
        make_opponent(entry, env, "wizard")


@pytest.mark.parametrize("kind", ["Base", "Base+M", "Base+LP", "Base+MLP", "QBGAA"])
def test_types_of_games_go_back_and_forth(kind):
    hand = read_type(kind)
    assert write_game(hand, [], "NotStarted") == f"{kind};NotStarted;White[1]"
    assert write_tile(0, Hand.of("QA")) == "wQ"
