"""Settings of Hex. Never imports torch."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, highest, lowest

SMALLEST, LARGEST = 2, 19


class HexConfig(Config):
    """Which boards are played on, and by which rules."""

    size: WholeRange = 7
    """Cells along a side of the board, or the range they are drawn from."""
    swap: bool = False
    """Whether the second player may take over the first stone, mirrored, in place of a first move."""
    opening_plies: WholeRange = 0
    """Random stones on the board before a game begins, or their range; none that would win is placed."""
    distances: bool = False
    """Whether nodes also show how near each player is to joining its sides, and which ways are shortest."""
    max_size: int | None = None
    """Room for larger boards, for stages that grow; as much as `size` needs if not given."""

    @property
    def capacity(self) -> int:
        """The largest side that there is room for."""
        return int(highest(self.size)) if self.max_size is None else self.max_size

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if lowest(self.size) < SMALLEST or self.capacity > LARGEST:
            raise ValueError(
                f"boards go from {SMALLEST} to {LARGEST}, got size {self.size}, max_size {self.max_size}"
            )
        if highest(self.size) > self.capacity:
            raise ValueError(f"size {self.size} needs more room than max_size {self.max_size}")
        if lowest(self.opening_plies) < 0:
            raise ValueError(f"opening_plies cannot be negative, got {self.opening_plies}")
        return self
