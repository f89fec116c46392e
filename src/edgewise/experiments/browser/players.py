"""Finds the players of a game on the page: trained runs, checkpoints and baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.evaluation.instances import changed
from edgewise.experiments.contest import ReobservingPolicy, player_name
from edgewise.experiments.evaluate import environment_of, load_trained
from edgewise.experiments.lookahead import mcts_policy, networks_of
from edgewise.plugins import Environment, environment, environments
from edgewise.search.network import NetworkEvaluator
from edgewise.search.tree import Evaluator


@dataclass(frozen=True)
class Player:
    """A policy at the board.

    Args:
        name: shown on the page.
        policy: sets `action` in the root of one world.
        hint: gives preferences over actions `[1, A]` and the value `[1]` for the player to move; None if the
            policy has no networks.
    """

    name: str
    policy: Policy
    hint: Evaluator | None = None


@dataclass(frozen=True)
class Table:
    """A game with its players.

    Args:
        entry: the declaration of the environment.
        env: one world.
        players: one, who plays against a person, or two.
    """

    entry: Environment
    env: GraphEnv[Any]
    players: tuple[Player, ...]


def make_table(
    names: list[str], *, settings: Mapping[str, Any], search: int = 0, which: str = "best", seed: int = 0
) -> Table:
    """Build the environment of the first player and all players.

    Args:
        names: run folders, checkpoints, or `GAME:BASELINE`.
        settings: fields of the environment's config that differ, such as its size.
        search: simulations of a tree search before each move of a trained player; 0 for none.
        which: `best` or `latest` checkpoint.
        seed: of the openings and of players that choose at random.

    Raises:
        ConfigError: a player does not exist, is of another game, or the game cannot be played on a page.
    """
    games = [_game_of(name) for name in names]
    if len(set(games)) > 1:
        raise ConfigError(f"all players must play one game, got {', '.join(sorted(set(games)))}")
    entry = environment(games[0])
    if entry.load("board") is None:
        able = sorted(name for name, each in environments().items() if each.board is not None)
        raise ConfigError(
            f"{games[0]} cannot be played on a page: its declaration has no `board`",
            hint=f"these can: {', '.join(able)}",
        )
    torch.manual_seed(seed)
    base = _config(entry, names[0], settings, which)
    env = entry.load("env")(base, num_envs=1, seed=seed)
    players = [_player(name, entry, env, settings=settings, search=search, which=which) for name in names]
    return Table(entry, env, tuple(players))


def _game_of(name: str) -> str:
    game, colon, _ = name.partition(":")
    if colon and game in environments() and not Path(name).exists():
        return game
    if not Path(name).is_dir():
        raise ConfigError(
            f"{name} is no run folder and no baseline",
            hint="expected a run folder, a checkpoint in one, or GAME:BASELINE",
        )
    return environment_of(Path(name))


def _config(entry: Environment, name: str, settings: Mapping[str, Any], which: str) -> Any:
    if Path(name).is_dir():
        return load_trained(Path(name), settings=settings, which=which, device="cpu").config.env
    return changed(entry.load("config")(), settings)


def _player(
    name: str, entry: Environment, env: GraphEnv[Any], *, settings: Mapping[str, Any], search: int, which: str
) -> Player:
    if not Path(name).is_dir():
        baseline, known = name.partition(":")[2], entry.load_baselines()
        if baseline not in known:
            names = ", ".join(known.names())
            raise ConfigError(f"{env.name} has no baseline {baseline!r}", hint=f"it has {names}")
        return Player(baseline, known[baseline](env))
    trained = load_trained(Path(name), settings=settings, which=which, device="cpu")
    own = entry.load("env")(changed(trained.config.env, {}), num_envs=1, seed=0)
    shown, networks = player_name(Path(name)), networks_of(trained.algorithm)
    hint = (
        None
        if networks is None
        else _reobserving(own, NetworkEvaluator(networks[0], denormalise=networks[1]))
    )
    if not search:
        return Player(shown, ReobservingPolicy(own, trained.policy), hint)
    policy = mcts_policy(own, trained.algorithm, simulations=search)
    return Player(f"{shown} + search {search}", policy, hint)


def _reobserving(env: GraphEnv[Any], evaluator: Evaluator) -> Evaluator:
    """Return an evaluator that sees states as its own environment shows them."""

    def evaluate(root: TensorDictBase) -> tuple[Tensor, Tensor]:
        return evaluator(root.copy().update(env.whole_observation(root["state"])))

    return evaluate
