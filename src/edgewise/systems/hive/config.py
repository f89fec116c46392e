"""Settings of Hive. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, NODES, ROWS
from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, lower_bound
from edgewise.systems.hive.pieces import ANT, BASE_HAND, EXPANSIONS, MOSQUITO, Hand


class HiveConfig(Config):
    """Tiles of each player and limits of the game."""

    hand: str = BASE_HAND
    """Tiles of each player, one letter each: Q (queen), S (spider), B (beetle), G (grasshopper), A (ant)."""
    expansions: str = ""
    """Tiles that are added to the hand: any of M (mosquito), L (ladybug) and P (pillbug)."""
    max_steps: int = Field(200, ge=1, le=FRAMES)
    """Plies after which a game is truncated."""
    shaping: float = Field(0.0, ge=0, le=1)
    """Weight in the reward of a ply of how it changes the share of hexes that are occupied around the
    opponent's queen minus that around the own; for training, since few games of beginners are decided."""
    opening_plies: WholeRange = 0
    """Number of random plies at the start of a game, or the range to sample it from."""
    repetition_window: int = Field(32, ge=1, le=ROWS)
    """Latest plies in which a position that occurs for the third time is a draw; 1 for no such draws."""
    max_moves: int | None = Field(None, ge=1, le=NODES)
    """Capacity of the list of legal moves; by default more than games are known to need. A position with
    more moves is an error that names the number to set."""

    prior: Literal["none", "pressure"] = "none"
    """What is observed as `action_prior`, for models with `model.prior`: `pressure`, by how many hexes a move
    changes what is occupied around the opponent's queen, minus that around the own one, minus 3 for each
    earlier occurrence of the position after it."""
    keep_moves: bool = False
    """Whether the state holds all moves of the game, which opponents that speak UHP need."""

    @property
    def tiles(self) -> Hand:
        """The hand of each player with its expansions."""
        return Hand.of(self.hand + self.expansions)

    @property
    def move_capacity(self) -> int:
        """Capacity of the list of moves: ants go anywhere around the hive, other tiles to a few hexes."""
        if self.max_moves is not None:
            return self.max_moves
        hand = self.tiles
        return len(hand.slots(ANT, MOSQUITO)) * hand.cells + 10 * hand.size

    @model_validator(mode="after")
    def _is_playable(self) -> Self:
        foreign = sorted(set(self.expansions) - set(EXPANSIONS))
        if foreign:
            raise ValueError(f"expansions are any of {', '.join(EXPANSIONS)}, got {foreign[0]!r}")
        Hand.of(self.hand + self.expansions)
        if lower_bound(self.opening_plies) < 0:
            raise ValueError(f"opening_plies cannot be negative, got {self.opening_plies}")
        return self
