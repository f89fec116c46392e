"""Settings of expert iteration. Never imports torch, so that errors are quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import REAL, ROWS
from edgewise.config.model import Config


class ExpertIterationConfig(Config):
    """Expert iteration, for one player or two. Every number that is not in `fixed` can be scheduled."""

    removed: ClassVar[Mapping[str, Any]] = {"weight_decay": 1e-4}

    fixed: ClassVar[tuple[str, ...]] = ("buffer_size",)

    simulations: int = Field(8, ge=1, le=ROWS)
    """Simulations of the tree search per move of training."""
    considered: int = Field(4, ge=1, le=ROWS)
    """Largest number of moves that the search tries at its root; each round drops the worse half."""
    value_scale: float = Field(0.5, gt=0, le=REAL)
    """How much values count against the prior in the improved policy; less for noisy values."""
    learning_rate: float = Field(1e-3, ge=0, le=REAL)
    """Learning rate of Adam, for actor and critic."""
    updates: int = Field(16, ge=1, le=ROWS)
    """Gradient steps after each batch."""
    minibatch_size: int = Field(256, ge=1, le=ROWS)
    """Positions per minibatch, sampled from the buffer; nothing is learnt before as many are of finished
    games."""
    buffer_size: int = Field(30_000, ge=1, le=ROWS)
    """Number of latest positions to keep."""
    reanalysis: float = Field(0.0, ge=0, le=REAL)
    """Stored positions that are searched again per collected position, to replace their policy targets."""
    search_share: float = Field(0.0, ge=0, le=1)
    """Weight of the value that the search found in the value target; the rest is the outcome of the game."""
    value_coefficient: float = Field(1.0, ge=0, le=REAL)
    """Weight of the value loss."""
    max_grad_norm: float = Field(1.0, gt=0, le=REAL)
    """Gradients are clipped to this norm."""

    @model_validator(mode="after")
    def _buffer_holds_a_minibatch(self) -> Self:
        if self.buffer_size < self.minibatch_size:
            raise ValueError(
                f"buffer_size={self.buffer_size} holds no minibatch of minibatch_size={self.minibatch_size}"
            )
        return self
