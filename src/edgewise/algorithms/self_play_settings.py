"""Settings of self-play, for every algorithm that can learn games of two players. Never imports torch."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, ROWS
from edgewise.config.model import AppliesIf, Config

IF_POOL = AppliesIf("pool_share is above 0", lambda _, own: own.pool_share > 0)
IF_BASELINES = AppliesIf("there are baselines to play against", lambda _, own: bool(own.baselines))
IF_GATE = AppliesIf("there is a gate", lambda _, own: own.gate is not None)


class SelfPlaySettings(Config):
    """How games against the current policy and snapshots of it are collected."""

    self_play_fixed: ClassVar[tuple[str, ...]] = (
        "pool_share",
        "pool_size",
        "snapshot_every",
        "opponents",
        "baselines",
        "baseline_share",
        "gate",
        "gate_games",
    )

    pool_share: float = Field(0.25, ge=0, le=1)
    """Fraction of games against snapshots; the others are against the current policy."""
    pool_size: int = Field(8, ge=1, le=ROWS)
    """Number of latest snapshots to keep."""
    snapshot_every: int = Field(10, ge=1, le=FRAMES)
    """Batches between snapshots."""
    opponents: Annotated[int, IF_POOL] = Field(2, ge=1, le=ROWS)
    """Number of different snapshots to play against per batch."""
    matchmaking: Annotated[Literal["latest", "uniform", "hard", "variance"], IF_POOL] = "variance"
    """How opponents are chosen: the latest, uniformly, or weighted by (1 - x)² (`hard`) or x (1 - x)
    (`variance`), where x is the score against them."""
    baselines: tuple[str, ...] = ()
    """Baselines of the environment that are opponents too; their games continue from batch to batch."""
    baseline_share: Annotated[float, IF_BASELINES] = Field(0.25, ge=0, le=1)
    """Fraction of games against baselines, if any are named, in equal parts."""
    gate: float | None = Field(None, gt=0, lt=1)
    """Largest probability of accepting a snapshot that is not better than the latest; none to accept all."""
    gate_games: Annotated[int, IF_GATE] = Field(400, ge=2, le=ROWS)
    """Maximum number of games between a new snapshot and the latest one before it is accepted or rejected."""

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.baselines and self.pool_share + self.baseline_share > 1:
            raise ValueError(
                f"pool_share + baseline_share is at most 1, got {self.pool_share} + {self.baseline_share}"
            )
        return self
