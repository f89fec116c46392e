"""Players of the UHP engine: the policy of a run, or an opponent of the arena, in games of any hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.experiments.contest import ReobservingPolicy
from edgewise.experiments.evaluate import environment_of, load_trained
from edgewise.experiments.opponents import make_opponent, needed_settings
from edgewise.plugins import environment
from edgewise.runs.zoo import run_path
from edgewise.systems.hive.config import HiveConfig
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.game_file import MOST_MOVES, Game
from edgewise.systems.hive.notation import Hive, read_move, write_move
from edgewise.systems.hive.pieces import EXPANSIONS, Hand
from edgewise.systems.hive.uhp_engine import Chooser

NAME = "hive"


def chooser(player: str) -> Chooser:
    """Return the player of a run folder or `zoo:NAME`, or an opponent of the arena such as `mcts:100`.

    Raises:
        ConfigError: there is none.
    """
    path = run_path(player)
    is_run = (path / "config.json").is_file()
    if is_run and environment_of(path) != NAME:
        raise ConfigError(f"{player} is a run of {environment_of(path)}, not of {NAME}")
    build = _trained(path) if is_run else _opponent(player)
    tables: dict[str, tuple[HiveEnv, Policy]] = {}

    def choose(game: Game) -> str:
        letters = game.hand.letters
        if letters not in tables:
            tables[letters] = build(_settings(game.hand))
        env, policy = tables[letters]
        root = _after(env, game)
        hive = Hive.of(root["state"], game.hand)
        return write_move(hive.moves[int(policy(root)["action"])], hive)

    return choose


def _settings(hand: Hand) -> dict[str, Any]:
    """Return the settings of games with a hand that begin with an empty board."""
    letters = hand.letters
    return {
        "hand": "".join(letter for letter in letters if letter not in EXPANSIONS),
        "expansions": "".join(letter for letter in EXPANSIONS if letter in letters),
        "opening_plies": 0,
        "max_steps": MOST_MOVES,
    }


def _trained(path: Path) -> Callable[[dict[str, Any]], tuple[HiveEnv, Policy]]:
    def build(settings: dict[str, Any]) -> tuple[HiveEnv, Policy]:
        trained = load_trained(path, settings=settings, device="cpu")
        env = HiveEnv(trained.config.env, num_envs=1, seed=0)
        return env, ReobservingPolicy(env, trained.policy)

    return build


def _opponent(name: str) -> Callable[[dict[str, Any]], tuple[HiveEnv, Policy]]:
    entry = environment(NAME)

    def build(settings: dict[str, Any]) -> tuple[HiveEnv, Policy]:
        config = HiveConfig(**{**settings, **needed_settings(entry, [name])})
        env = HiveEnv(config, num_envs=1, seed=0)
        return env, make_opponent(entry, env, name)

    build({})  # so that a name that does not exist is said at once
    return build


def _after(env: HiveEnv, game: Game) -> TensorDictBase:
    """Return the root after the moves of a game."""
    root: TensorDictBase = env.reset()
    names = list(root.keys(include_nested=True, leaves_only=True))
    for name in game.moves:
        hive = Hive.of(root["state"], game.hand)
        action = torch.tensor([hive.moves.index(read_move(name, hive))])
        root = env.simulate(root.set("action", action)).select(*names)
    return root
