"""Settings of the networks that steer boats, without torch."""

from __future__ import annotations

from edgewise.config.bounds import Real
from edgewise.models.config import EgoConfig

SELF_SCALE = (20.0, 20.0, 2.0, 2.0, 0.5, 1000.0, 1000.0)
"""Scales of a robot's own features: goal (2, m), velocity (2, m/s), yaw rate (rad/s), thrust (2, N)."""
OBJECT_SCALE = (20.0, 20.0, 2.0, 2.0, 2.0)
"""Scales of an object's features: position (2, m), velocity (2, m/s), radius (m)."""


class MarineEgoConfig(EgoConfig):
    """An ego network with the scales of the marine environment.

    Use `inputs="scaled"` with `env.normalise=true`, `inputs="physical"` with `env.normalise=false`, and
    `inputs="raw"` for weights that were trained on unscaled observations.
    """

    radius: Real = 2.8
    """Radius of a robot (m), for its distance to objects."""
    self_scale: tuple[Real, ...] = SELF_SCALE
    """Divisors of a robot's own features: goal (2, m), velocity (2, m/s), yaw rate (rad/s), thrust (2, N)."""
    object_scale: tuple[Real, ...] = OBJECT_SCALE
    """Divisors of an object's features: position (2, m), velocity (2, m/s), radius (m)."""
