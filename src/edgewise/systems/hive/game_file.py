"""Games of Hive as text, in the game strings of the Universal Hive Protocol (UHP).

A game string is `TYPE;STATE;TURN;MOVE;MOVE;...`, such as `Base+M;InProgress;White[2];wA1;bG1 wA1-`. A hand
that UHP has no name for is written as its letters, such as `QAAGB`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tensordict import TensorDict

from edgewise.config.errors import DataError
from edgewise.systems.hive import dynamics
from edgewise.systems.hive.dynamics import Position
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.notation import Hive, read_move
from edgewise.systems.hive.pieces import BASE_HAND, EXPANSIONS, Hand

NOT_STARTED, IN_PROGRESS, DRAW, WHITE_WINS, BLACK_WINS = (
    "NotStarted",
    "InProgress",
    "Draw",
    "WhiteWins",
    "BlackWins",
)
STATES = (NOT_STARTED, IN_PROGRESS, DRAW, WHITE_WINS, BLACK_WINS)
MOST_MOVES = 512
WINDOW = 32
"""Latest positions among which repetitions are counted."""


@dataclass(frozen=True)
class Game:
    """A game that was read.

    Args:
        hand: of both players.
        moves: in UHP, by ply.
        position: after the moves, of one game.
    """

    hand: Hand
    moves: tuple[str, ...]
    position: Position


def read_type(text: str) -> Hand:
    """Return the hand of a type of games, such as `Base+ML`, or of letters, such as `QBGAA`.

    Raises:
        DataError: there is no such type.
    """
    base, _, expansions = text.partition("+")
    try:
        if set(expansions) - set(EXPANSIONS):
            raise ValueError(f"expansions are any of {', '.join(EXPANSIONS)}")
        return Hand.of((BASE_HAND if base == "Base" else base) + expansions)
    except ValueError as error:
        raise DataError(
            f"{text[:40]!r} is no type of game: {error}", hint="such as Base or Base+MLP"
        ) from None


def read_game(text: str) -> Game:
    """Read a game string, or a type of games alone, and play its moves.

    Raises:
        DataError: it is no game string, a move is not legal, or there are moves after the end of the game.
    """
    kind, *rest = text.strip().split(";")
    hand = read_type(kind)
    if rest and (len(rest) < 2 or rest[0] not in STATES):
        raise DataError(
            f"{text.strip()[:60]!r} is no game string: expected TYPE;STATE;TURN;MOVE;...",
            hint=f"states are {', '.join(STATES)}",
        )
    moves = tuple(rest[2:])
    position: Position = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=WINDOW)
    for number, name in enumerate(moves, 1):
        try:
            position = play_move(position, name, hand)
        except DataError as error:
            raise DataError(f"move {number}: {error.message}", hint=error.hint) from None
    return Game(hand, moves, position)


def play_move(position: Position, name: str, hand: Hand) -> Position:
    """Play a move in UHP.

    Raises:
        DataError: it is not legal, or the game is over.
    """
    if bool(dynamics.is_over(position, hand)):
        raise DataError(f"{name!r} comes after the end of the game: {game_state(position, hand)}")
    move = read_move(name, Hive.of(position, hand))
    return dynamics.advance(position, torch.tensor([move], dtype=torch.int16), hand)


def game_state(position: Position, hand: Hand) -> str:
    """Return the state of a game in UHP."""
    if not bool(dynamics.is_over(position, hand)):
        return IN_PROGRESS if int(position["plies"]) else NOT_STARTED
    white = float(dynamics.result(position, hand, player=torch.zeros_like(position["player"])))
    return {1.0: WHITE_WINS, -1.0: BLACK_WINS}.get(white, DRAW)


def game_type(hand: Hand) -> str:
    """Return the type of games with a hand, such as `Base+ML`."""
    letters = hand.letters
    expansions = "".join(letter for letter in EXPANSIONS if letter in letters)
    rest = "".join(letter for letter in letters if letter not in EXPANSIONS)
    if rest != Hand.of(BASE_HAND).letters:
        return letters
    return f"Base+{expansions}" if expansions else "Base"


def write_game(hand: Hand, moves: Sequence[str], state: str) -> str:
    """Write the game string of moves in UHP, with one of the states of UHP."""
    turn = f"{('White', 'Black')[len(moves) % 2]}[{len(moves) // 2 + 1}]"
    return ";".join((game_type(hand), state, turn, *moves))


def record(env: HiveEnv, start: TensorDict, moves: Sequence[str], result: float | None) -> str:
    """Write a game as a game string.

    Raises:
        DataError: the game did not begin with an empty board, which a game string cannot say.
    """
    if int(start["plies"]) > 0:
        raise DataError("a game that began with random plies has no game string: play with opening_plies=0")
    states = {1: WHITE_WINS, -1: BLACK_WINS, 0: DRAW}
    state = (IN_PROGRESS if moves else NOT_STARTED) if result is None else states[round(result)]
    return write_game(env.hand, moves, state) + "\n"
