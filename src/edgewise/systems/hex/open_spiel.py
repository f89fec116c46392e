"""OpenSpiel's Monte-Carlo tree search as an independent opponent, if OpenSpiel is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from tensordict import TensorDict

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.systems.hex.dynamics import FIRST, SECOND
from edgewise.systems.hex.env import HexEnv

SIMULATIONS, EXPLORATION, SEED = 512, 1.4, 0
USAGE = "open_spiel:mcts:N"


def installed() -> bool:
    """Return whether OpenSpiel is installed."""
    return find_spec("pyspiel") is not None


def open_spiel_opponent(env: HexEnv, rest: str) -> Policy:
    """Return the opponent `open_spiel:mcts:N`, tree search with N simulations.

    Raises:
        ConfigError: OpenSpiel is not installed, or `rest` is not `mcts:N`.
    """
    kind, _, number = rest.partition(":")
    if kind != "mcts" or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 10**9:
        raise ConfigError(f"open_spiel:{rest}: expected {USAGE}, with a number of simulations N")
    if not installed():
        raise ConfigError(f"open_spiel:{rest}: OpenSpiel is not installed", hint="pip install open_spiel")
    return open_spiel_player(env, simulations=int(number))


def open_spiel_player(env: HexEnv, *, simulations: int = SIMULATIONS) -> Policy:
    """Return OpenSpiel's UCT player with one random rollout per simulation. It plays one game at a time."""
    if env.config.swap:
        raise ConfigError("OpenSpiel's Hex has no swap", hint="play it with swap=false")
    bots: dict[int, tuple[Any, Any]] = {}

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        moves = []
        for size, stones in zip(state["size"].tolist(), state["stones"].tolist(), strict=True):
            if size not in bots:
                bots[size] = _bot(size, simulations)
            game, bot = bots[size]
            moves.append(bot.step(_position(game, stones[: size * size])))
        device = state["player"].device
        return tensordict.set("action", torch.tensor(moves, device=device))

    return policy


def _bot(size: int, simulations: int) -> tuple[Any, Any]:
    """Build the game and its player for one board side."""
    import pyspiel  # type: ignore[import-not-found]

    game = pyspiel.load_game("hex", {"num_rows": size, "num_cols": size})
    evaluator = pyspiel.RandomRolloutEvaluator(1, SEED)
    bot = pyspiel.MCTSBot(game, evaluator, EXPLORATION, simulations, 100, True, SEED, False)
    return game, bot


def _position(game: Any, cells: list[int]) -> Any:
    """Build an OpenSpiel state with these stones. Their order does not matter while nobody has won."""
    placed = {
        colour: [cell for cell, stone in enumerate(cells) if stone == colour] for colour in (FIRST, SECOND)
    }
    position = game.new_initial_state()
    for ply in range(len(placed[FIRST]) + len(placed[SECOND])):
        position.apply_action(placed[(FIRST, SECOND)[ply % 2]][ply // 2])
    return position
