"""An engine that speaks the Universal Hive Protocol (UHP), so that other programs can play our policies.

A program sends a line and reads the answer up to the line `ok`. An answer that begins with `err` or
`invalidmove` says what was wrong. See https://github.com/jonthysell/Mzinga/wiki/UniversalHiveProtocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version

from edgewise.config.errors import ConfigError, DataError
from edgewise.systems.hive.dynamics import Position
from edgewise.systems.hive.game_file import (
    IN_PROGRESS,
    NOT_STARTED,
    Game,
    game_state,
    play_move,
    read_game,
    write_game,
)
from edgewise.systems.hive.notation import PASS, Hive, write_move
from edgewise.systems.hive.pieces import Hand

Chooser = Callable[[Game], str]
"""Returns the move in UHP that a player makes in a game that is not over."""
CAPABILITIES = "Mosquito;Ladybug;Pillbug"
FIRST_GAME = "Base"
LONGEST_LINE = 1 << 16


class UhpEngine:
    """One game, and the commands that change and show it.

    Args:
        name: of the player, for `info`.
        choose: the player.
    """

    def __init__(self, name: str, choose: Chooser) -> None:
        self.name, self.choose = name, choose
        self._hand: Hand | None = None
        self._moves: list[str] = []
        self._positions: list[Position] = []
        self._commands: dict[str, Callable[[str], list[str]]] = {
            "info": lambda rest: self.info(),  # noqa: ARG005
            "newgame": self._newgame,
            "play": self._play,
            "pass": lambda rest: self._play(PASS),  # noqa: ARG005
            "validmoves": lambda rest: [";".join(self._legal())],  # noqa: ARG005
            "bestmove": self._bestmove,
            "undo": self._undo,
            "options": self._options,
        }

    def info(self) -> list[str]:
        """Return name and version, and the expansions that it plays with."""
        return [f"id edgewise {version('edgewise')}, {self.name}", CAPABILITIES]

    def answer(self, line: str) -> list[str]:
        """Carry out a command and return the lines of its answer, `ok` included."""
        command, _, rest = line.strip().partition(" ")
        try:
            if command not in self._commands:
                known = ", ".join(self._commands)
                raise DataError(f"{command[:40]!r} is no command: expected one of {known}")
            found = self._commands[command](rest.strip())
        except InvalidMoveError as error:
            found = [f"invalidmove {error}"]
        except (DataError, ConfigError) as error:
            found = [f"err {_one_line(error)}"]
        return [*found, "ok"]

    def _newgame(self, rest: str) -> list[str]:
        game = read_game(rest or FIRST_GAME)
        self._hand, self._moves = game.hand, []
        self._positions = [read_game(rest.partition(";")[0] or FIRST_GAME).position]
        for name in game.moves:
            self._positions.append(play_move(self._positions[-1], name, game.hand))
            self._moves.append(name)
        return [self._game_string()]

    def _play(self, rest: str) -> list[str]:
        hand = self._started()
        try:
            after = play_move(self._positions[-1], rest, hand)
        except DataError as error:
            raise InvalidMoveError(_one_line(error)) from None
        self._positions.append(after)
        self._moves.append(rest)
        return [self._game_string()]

    def _bestmove(self, rest: str) -> list[str]:
        limit = rest.partition(" ")[0]
        if limit not in ("time", "depth"):
            raise DataError(f"bestmove: got {rest[:40]!r}, expected `time hh:mm:ss` or `depth N`")
        hand = self._started()
        state = game_state(self._positions[-1], hand)
        if state not in (NOT_STARTED, IN_PROGRESS):
            raise DataError(f"the game is over: {state}")
        return [self.choose(Game(hand, tuple(self._moves), self._positions[-1]))]

    def _undo(self, rest: str) -> list[str]:
        self._started()
        if rest and not (rest.isascii() and rest.isdigit()):
            raise DataError(f"undo: got {rest[:40]!r}, expected a number of moves")
        count = int(rest or 1)
        if not 1 <= count <= len(self._moves):
            raise DataError(f"undo: got {count}, and {len(self._moves)} moves were played")
        del self._moves[-count:], self._positions[-count:]
        return [self._game_string()]

    def _options(self, rest: str) -> list[str]:
        """Return the options: there are none."""
        if rest:
            raise DataError(f"options: got {rest[:40]!r}, and this engine has no options")
        return []

    def _legal(self) -> list[str]:
        hand = self._started()
        if game_state(self._positions[-1], hand) not in (NOT_STARTED, IN_PROGRESS):
            return []
        hive = Hive.of(self._positions[-1], hand)
        return [write_move(move, hive) for move in hive.moves]

    def _started(self) -> Hand:
        if self._hand is None:
            raise DataError("no game has been started: expected `newgame` first")
        return self._hand

    def _game_string(self) -> str:
        hand = self._started()
        return write_game(hand, self._moves, game_state(self._positions[-1], hand))


class InvalidMoveError(DataError):
    """A move that is not legal, which UHP tells apart from other errors."""


def converse(engine: UhpEngine, lines: Iterable[str]) -> Iterator[str]:
    """Yield what the engine writes to its output: its greeting, then an answer to every line of the input."""
    yield from (*engine.info(), "ok")
    for line in lines:
        if line.strip() in ("exit", "quit"):
            return
        if line.strip():
            yield from engine.answer(line[:LONGEST_LINE])


def _one_line(error: DataError | ConfigError) -> str:
    text = error.message if error.hint is None else f"{error.message}; {error.hint}"
    return " ".join(text.split())
