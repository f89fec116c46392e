"""Opponents that are given by a scheme: tree search with random games, and players of other programs."""

from __future__ import annotations

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.experiments.opponents import Opponent
from edgewise.search.mcts import MCTS
from edgewise.search.random_games import random_game_evaluator
from edgewise.systems.hive import open_spiel, uhp
from edgewise.systems.hive.env import HiveEnv

RANDOM_PLIES = 60
"""Plies after which a random game of the tree search counts as drawn."""
AT_ONCE = 16
"""Random games of one search that are played together."""


def mcts_player(env: HiveEnv, simulations: str) -> Policy:
    """Return Monte-Carlo tree search with one random game per simulation, batched over games.

    Raises:
        ConfigError: `simulations` is not a number.
    """
    if not simulations.isascii() or not simulations.isdigit() or not 1 <= int(simulations) <= 10**6:
        raise ConfigError(f"mcts:{simulations}: expected mcts:N, with a number of simulations N")
    evaluator = random_game_evaluator(env, max_steps=RANDOM_PLIES)
    return MCTS(env, evaluator, simulations=int(simulations), at_once=AT_ONCE)


OPPONENTS = {
    "mcts": Opponent(mcts_player, "mcts:N"),
    "open_spiel": open_spiel.OPPONENT,
    "uhp": uhp.OPPONENT,
}
