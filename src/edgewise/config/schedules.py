"""Schedules of a number over a run: constant, linear, cosine or piecewise."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from edgewise.config.bounds import FRAMES, Real
from edgewise.config.model import Config


class Constant(Config):
    """A constant value."""

    kind: Literal["constant"] = "constant"
    """Selects this schedule."""
    value: Real
    """The value."""

    def at(self, frames: int, total_frames: int) -> float:  # noqa: ARG002 - one signature for every schedule
        """Return the value after `frames` of `total_frames`."""
        return self.value


class Linear(Config):
    """Linear interpolation from `start` to `end`, constant afterwards."""

    kind: Literal["linear"] = "linear"
    """Selects this schedule."""
    start: Real
    """Value at the first frame."""
    end: Real = 0.0
    """Value at the last frame."""
    frames: int | None = Field(None, gt=0, le=FRAMES)
    """Frames until `end` is reached; the whole run if not given."""

    def at(self, frames: int, total_frames: int) -> float:
        """Return the value after `frames` of `total_frames`."""
        return self.start + (self.end - self.start) * _progress(frames, self.frames or total_frames)


class Cosine(Config):
    """Cosine annealing from `start` to `end`, after an optional linear warm-up from zero."""

    kind: Literal["cosine"] = "cosine"
    """Selects this schedule."""
    start: Real
    """Value after the warm-up."""
    end: Real = 0.0
    """Value at the last frame."""
    frames: int | None = Field(None, gt=0, le=FRAMES)
    """Frames until `end` is reached, warm-up included; the whole run if not given."""
    warmup_frames: int = Field(0, ge=0, le=FRAMES)
    """Frames of linear warm-up from zero to `start`."""

    def at(self, frames: int, total_frames: int) -> float:
        """Return the value after `frames` of `total_frames`."""
        if frames < self.warmup_frames:
            return self.start * frames / self.warmup_frames
        length = (self.frames or total_frames) - self.warmup_frames
        progress = _progress(frames - self.warmup_frames, max(length, 1))
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * progress))


class Piecewise(Config):
    """Linear interpolation between points, or steps; constant before the first and after the last point."""

    kind: Literal["piecewise"] = "piecewise"
    """Selects this schedule."""
    points: tuple[tuple[Annotated[int, Field(ge=0, le=FRAMES)], Real], ...] = Field(min_length=1)
    """Pairs of a number of frames and the value there, in increasing order of frames."""
    interpolate: bool = True
    """Whether to interpolate between two points; otherwise the value of the earlier point is used."""

    @field_validator("points")
    @classmethod
    def _rising(cls, points: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
        frames = [frame for frame, _ in points]
        if any(later <= earlier for earlier, later in pairwise(frames)):
            raise ValueError(f"the frames of the points must increase, got {frames}")
        return points

    def at(self, frames: int, total_frames: int) -> float:  # noqa: ARG002 - one signature for every schedule
        """Return the value after `frames` of `total_frames`."""
        if frames <= self.points[0][0]:
            return self.points[0][1]
        for (first, low), (second, high) in pairwise(self.points):
            if frames < second:
                return low + (high - low) * (frames - first) / (second - first) if self.interpolate else low
        return self.points[-1][1]


Schedule = Annotated[Constant | Linear | Cosine | Piecewise, Field(discriminator="kind")]
"""Any of the four schedules, selected by `kind`."""


def _progress(frames: int, length: int) -> float:
    """Return the fraction of `length` that has passed, between 0 and 1."""
    return min(max(frames / length, 0.0), 1.0)
