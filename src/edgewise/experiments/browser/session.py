"""One game on the page: whose turn it is, moves, taking back, and what the page shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from tensordict import TensorDictBase
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.config.errors import DataError
from edgewise.experiments.browser.board import Board
from edgewise.experiments.browser.players import Player, Table

PERSON = "you"


@dataclass(frozen=True)
class Ply:
    """A move that was made: its name, and the game before it."""

    name: str
    root: TensorDictBase
    player: int


@dataclass
class Session:
    """A game between a person and a policy, or between two policies.

    Args:
        table: the game and its players.
        seat: the person's seat, 0 or 1; None to watch two policies.

    Attributes:
        version: counts every change, so that a page can tell whether it shows the present position.
    """

    table: Table
    seat: int | None = 0
    version: int = 0
    plies: list[Ply] = field(default_factory=list)

    def __post_init__(self) -> None:
        if (self.seat is None) != (len(self.table.players) == 2):
            raise ValueError("a person plays against one policy, and watches two")
        self._board = self.table.entry.load("board")
        self.new()

    def new(self) -> None:
        """Begin a new game."""
        self.root, self.plies, self.gained, self.over = self.table.env.reset(), [], 0.0, False
        self.version += 1

    @property
    def turn(self) -> int:
        """The player to move."""
        return int(self.root["player"])

    @property
    def names(self) -> tuple[str, str]:
        """Who plays first and second."""
        one, two = (player.name for player in (*self.table.players, *self.table.players)[:2])
        if self.seat is None:
            return one, two
        return (PERSON, one) if self.seat == 0 else (one, PERSON)

    def machine(self) -> Player | None:
        """Return the policy whose turn it is; None if it is the person's, or the game is over."""
        if self.over or self.turn == self.seat:
            return None
        return self.table.players[self.turn if self.seat is None else 0]

    def board(self) -> Board:
        """Return the position as tiles and legal moves."""
        board: Board = self._board(self.table.env, self.root["state"])
        return board

    def play(self, name: str) -> None:
        """Make the person's move.

        Raises:
            DataError: the move is not legal, or it is not the person's turn.
        """
        if self.over:
            raise DataError("the game is over: begin a new one")
        if self.machine() is not None:
            raise DataError(f"it is the turn of {self.names[self.turn]}")
        moves = {move.name: move for move in self.board().moves}
        if name not in moves:
            raise DataError(f"{name!r} is not a legal move here")
        self._advance(moves[name].action, name)

    @torch.no_grad()
    def think(self) -> None:
        """Let the policy whose turn it is make its move.

        Raises:
            DataError: it is the person's turn, or the game is over.
        """
        player = self.machine()
        if player is None:
            raise DataError("the game is over" if self.over else "it is your turn")
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            action = int(player.policy(self.root.copy())["action"])
        name = next(move.name for move in self.board().moves if move.action == action)
        self._advance(action, name)

    def take_back(self) -> None:
        """Return to the person's latest decision; to the ply before if nobody plays.

        Raises:
            DataError: there is nothing to take back.
        """
        own = [k for k, ply in enumerate(self.plies) if self.seat is None or ply.player == self.seat]
        if not own:
            raise DataError("there is no move to take back")
        self.root, self.plies = self.plies[own[-1]].root, self.plies[: own[-1]]
        self.gained, self.over = 0.0, False
        self.version += 1

    def _advance(self, action: int, name: str) -> None:
        before, player = self.root, self.turn
        after = self.table.env.simulate(before.copy().set("action", torch.tensor([action])))
        self.plies.append(Ply(name, before, player))
        self.gained += float(after["reward"]) * (1 - 2 * player)
        self.over = bool(after["done"])
        self.root = after.exclude("reward", "action")
        self.version += 1

    def result(self) -> str:
        """Return how the game ended; empty while it goes on."""
        if not self.over:
            return ""
        if self.gained == 0:
            return "the game is a draw"
        winner = self.names[0 if self.gained > 0 else 1]
        return "you win" if winner == PERSON else f"{winner} wins"

    @torch.no_grad()
    def view(self) -> dict[str, Any]:
        """Return everything that the page shows, as plain data."""
        board = self.board()
        shares, value = self._hint()
        machine = self.machine()
        return {
            "version": self.version,
            "game": self.table.env.name,
            "names": self.names,
            "sides": board.sides,
            "note": board.note,
            "seat": self.seat,
            "turn": self.turn,
            "over": self.over,
            "result": self.result(),
            "thinks": None if machine is None else machine.name,
            "value": value,
            "history": [ply.name for ply in self.plies],
            "tiles": [
                {"place": tile.place, "owner": tile.owner, "label": tile.label, "marked": tile.marked}
                for tile in board.tiles
            ],
            "moves": [
                {
                    "name": move.name,
                    "target": move.target,
                    "source": move.source,
                    "share": None if shares is None else shares[move.action],
                }
                for move in ([] if self.over else board.moves)
            ],
        }

    def _hint(self) -> tuple[list[float] | None, float | None]:
        """Return preferences over actions, and the value in the first player's view; None if unknown."""
        known = [player.hint for player in self.table.players if player.hint is not None]
        if not known or self.over:
            return None, None
        machine = self.machine()
        hint = known[0] if machine is None or machine.hint is None else machine.hint
        shares, value = hint(self.root)
        return shares[0].tolist(), float(value) * (1 - 2 * self.turn)

    def record(self) -> str:
        """Return the game as text: in the notation of the game if it has one, else its moves in order."""
        write = self.table.entry.load("record")
        moves = [ply.name for ply in self.plies]
        start = self.plies[0].root["state"] if self.plies else self.root["state"]
        if write is not None:
            text: str = write(self.table.env, start, moves, self.gained if self.over else None)
            return text
        return "\n".join(moves) + "\n"
