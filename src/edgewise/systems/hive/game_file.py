"""Games of Hive as text, in the game strings of the Universal Hive Protocol (UHP).

A game string is `TYPE;STATE;TURN;MOVE;MOVE;...`, such as `Base+M;InProgress;White[2];wA1;bG1 wA1-`. A hand
that UHP has no name for is written as its letters, such as `QAAGB`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensordict import TensorDict

from edgewise.config.errors import DataError
from edgewise.systems.hive.env import HiveEnv
from edgewise.systems.hive.pieces import BASE_HAND, EXPANSIONS, Hand

NOT_STARTED, IN_PROGRESS, DRAW, WHITE_WINS, BLACK_WINS = (
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
