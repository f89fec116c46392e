"""OpenSpiel's Monte-Carlo tree search as an independent opponent, if OpenSpiel is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from tensordict import TensorDictBase

from edgewise.config.errors import ConfigError
from edgewise.envs.policy import Policy
from edgewise.experiments.opponents import Opponent
from edgewise.systems.hive import dynamics
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.game_file import MOST_MOVES
from edgewise.systems.hive.notation import PASS, Hive, Move, read_destination, read_tile
from edgewise.systems.hive.pieces import BASE_HAND, Hand

USAGE = "open_spiel:mcts:N"
EXPLORATION, SEED = 1.4, 0
BOARD_SIZE = 20
"""Radius of OpenSpiel's finite board."""
EXPANSIONS = {"M": "uses_mosquito", "L": "uses_ladybug", "P": "uses_pillbug"}


def open_spiel_player(env: HiveEnv, rest: str) -> Policy:
    """Return OpenSpiel's UCT player with N simulations of one random game each. It plays one game at a time.

    OpenSpiel allows some moves of pinned tiles early in a game; the most visited legal move is played.

    Raises:
        ConfigError: OpenSpiel is not installed, the hand is not one of its own, or `rest` is not `mcts:N`.
    """
    kind, _, number = rest.partition(":")
    if kind != "mcts" or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 10**9:
        raise ConfigError(f"open_spiel:{rest}: expected {USAGE}, with a number of simulations N")
    if find_spec("pyspiel") is None:
        raise ConfigError(f"open_spiel:{rest}: OpenSpiel is not installed", hint="pip install open_spiel")
    if sorted(env.config.hand) != sorted(BASE_HAND):
        raise ConfigError(
            f"OpenSpiel's Hive has only the hand {BASE_HAND}, not {env.config.hand}",
            hint="play with the default hand; expansions are possible",
        )
    game, bot = _bot(env.config.expansions, int(number))

    def policy(tensordict: TensorDictBase) -> TensorDictBase:
        state = tensordict["state"]
        chosen = [_choose(game, bot, state[row : row + 1], env.hand) for row in range(len(state))]
        return tensordict.set("action", torch.tensor(chosen, device=state["player"].device))

    return policy


def _bot(expansions: str, simulations: int) -> tuple[Any, Any]:
    """Build the game and its player."""
    import pyspiel  # type: ignore[import-not-found]

    options = {name: letter in expansions for letter, name in EXPANSIONS.items()}
    game = pyspiel.load_game("hive", {**options, "board_size": BOARD_SIZE})
    evaluator = pyspiel.RandomRolloutEvaluator(1, SEED)
    return game, pyspiel.MCTSBot(game, evaluator, EXPLORATION, simulations, 100, True, SEED, False)


def _choose(game: Any, bot: Any, state: TensorDictBase, hand: Hand) -> int:
    """Return the place of the player's move in the list of one game `[1]`, which is replayed in OpenSpiel."""
    theirs = game.new_initial_state()
    ours = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=32)
    for slot, q, r in state["played"][0, : int(state["plies"])].tolist():
        move: Move = (slot, q, r)
        hive = Hive.of(ours, hand)
        theirs.apply_action(next(a for a in theirs.legal_actions() if _move_of(theirs, a, hive) == move))
        ours = dynamics.advance(ours, torch.tensor([move], dtype=torch.int16), hand)
    hive = Hive.of(state, hand)
    found = sorted(bot.mcts_search(theirs).children, key=lambda child: -child.explore_count)
    legal = (_move_of(theirs, child.action, hive) for child in found)
    best = next(each for each in legal if each is not None)
    return hive.moves.index(best)


def _move_of(theirs: Any, action: int, hive: Hive) -> Move | None:
    """Return an action of OpenSpiel as a legal move; None if it is not legal.

    OpenSpiel lists equal tiles in hand separately, we only the first of them.
    """
    words = theirs.action_to_string(action).split()
    if words == [PASS]:
        return next((move for move in hive.moves if move[0] == hive.hand.tiles), None)
    slot, place = read_tile(words[0], hive.hand), read_destination(words, hive)
    if not any(slot in stack for stack in hive.stacks.values()):
        slot = _first_in_hand(slot, hive)
    return (slot, *place) if (slot, *place) in hive.moves else None


def _first_in_hand(slot: int, hive: Hive) -> int:
    """Return the first of the mover's tiles in hand that are equal to the one in `slot`."""
    size, kinds = hive.hand.size, hive.hand.kinds
    placed = {tile for stack in hive.stacks.values() for tile in stack}
    owner = slot // size * size
    equal = [owner + each for each in range(size) if kinds[each] == kinds[slot % size]]
    return next(each for each in equal if each not in placed)


OPPONENT = Opponent(open_spiel_player, USAGE, {"keep_moves": True})
