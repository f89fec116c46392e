"""Settings of Hex. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import Whole, WholeRange, lower_bound, upper_bound

SMALLEST, LARGEST = 2, 19


class HexConfig(Config):
    """Size of the boards and rules of the game."""

    size: WholeRange = 7
    """Cells per side of the board, or the range to sample it from."""
    swap: bool = False
    """Whether the second player may take over the first stone, mirrored, as its first move (swap rule)."""
    opening_plies: WholeRange = 0
    """Number of random stones at the start of a game, or the range to sample it from; none of them wins."""
    distances: bool = False
    """Whether node features contain each player's distance to a connection, and the shortest paths."""
    currents: bool = False
    """Whether node features contain the share of each player's current through each cell, and its resistance,
    if the board were an electrical circuit between the player's sides."""
    prior: Literal["none", "current"] = "none"
    """What is observed as `action_prior`, for models with `model.prior`: `current`, the logarithm of the
    product of both players' shares of current through the cell."""
    max_size: Whole | None = None
    """Capacity in cells per side, for curricula that increase `size`; by default as much as `size` needs."""

    @property
    def capacity(self) -> int:
        """Largest side of the board."""
        return int(upper_bound(self.size)) if self.max_size is None else self.max_size

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lower_bound(self.size) < SMALLEST or self.capacity > LARGEST:
            raise ValueError(
                f"boards have {SMALLEST} to {LARGEST} rows, got size {self.size}, max_size {self.max_size}"
            )
        if upper_bound(self.size) > self.capacity:
            raise ValueError(f"size {self.size} exceeds max_size {self.max_size}")
        if lower_bound(self.opening_plies) < 0:
            raise ValueError(f"opening_plies cannot be negative, got {self.opening_plies}")
        return self
