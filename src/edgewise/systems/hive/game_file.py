"""Games of Hive as text, in the game strings of the Universal Hive Protocol (UHP): read and write.

A game string is `TYPE;STATE;TURN;MOVE;MOVE;...`, such as `Base+M;InProgress;White[2];wA1;bG1 wA1-`. A hand
that UHP has no name for is written as its letters, such as `QAAGB`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDict

from edgewise.config.errors import DataError
from edgewise.systems.hive import dynamics
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.notation import Hive, read_move
from edgewise.systems.hive.pieces import BASE_HAND, EXPANSIONS, Hand

NOT_STARTED, IN_PROGRESS, DRAW, WHITE_WINS, BLACK_WINS = STATES = (
    "NotStarted",
    "InProgress",
    "Draw",
    "WhiteWins",
    "BlackWins",
)
MOST_MOVES = 512


def game_type(hand: Hand) -> str:
    """Return the type of games with a hand, such as `Base+ML`."""
    letters = hand.letters
    expansions = "".join(letter for letter in EXPANSIONS if letter in letters)
    rest = "".join(letter for letter in letters if letter not in EXPANSIONS)
    if rest != Hand.of(BASE_HAND).letters:
        return letters
    return f"Base+{expansions}" if expansions else "Base"


def read_type(text: str) -> Hand:
    """Parse the type of a game.

    Raises:
        DataError: it is no type of Hive.
    """
    base, plus, expansions = text.partition("+")
    letters = (BASE_HAND if base == "Base" else base) + expansions
    try:
        if plus and not expansions:
            raise ValueError("expected letters of expansions after +")
        return Hand.of(letters)
    except ValueError as error:
        raise DataError(f"{text!r} is no type of game: {error}") from None


def write_game(hand: Hand, moves: Sequence[str], state: str) -> str:
    """Write the game string of moves in UHP, with one of the states of UHP."""
    turn = f"{('White', 'Black')[len(moves) % 2]}[{len(moves) // 2 + 1}]"
    return ";".join((game_type(hand), state, turn, *moves))


def read_game(text: str) -> tuple[Hand, list[str], dict[str, torch.Tensor]]:
    """Parse a game string and replay it; returns the hand, the moves and the position after them, `[1]`.

    Raises:
        DataError: a part is malformed, or a move is not legal; the message has the number of the move.
    """
    parts = text.strip().split(";")
    if len(parts) < 3:
        raise DataError(f"expected TYPE;STATE;TURN;MOVES, got {len(parts)} parts in {text.strip()[:60]!r}")
    hand = read_type(parts[0])
    if parts[1] not in STATES:
        raise DataError(f"{parts[1]!r} is no state of a game: expected {', '.join(STATES)}")
    moves = [part for part in parts[3:] if part]
    position = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=32)
    for number, name in enumerate(moves, 1):
        try:
            move = read_move(name, Hive.of(position, hand))
        except DataError as error:
            raise DataError(f"move {number}: {error.message}", hint=error.hint) from None
        position = dynamics.advance(position, torch.tensor([move], dtype=torch.int16), hand)
    expected = write_game(hand, moves, parts[1]).split(";")[2]
    if parts[2] != expected:
        raise DataError(f"the turn is {parts[2]!r}, but after {len(moves)} moves it is {expected!r}")
    return hand, moves, position


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
