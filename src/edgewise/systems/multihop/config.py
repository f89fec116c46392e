"""Settings of the `multihop` environment, and names of its networks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from edgewise.config.bounds import FRAMES, REAL
from edgewise.config.model import Config
from edgewise.envs.ranges import RealRange, lower_bound, upper_bound

SHIPPED = Path(__file__).parent / "instances"
_DRAWN = re.compile(r"barabasi(\d+)(?:\*(\d+))?")


def parse_drawn(name: str) -> tuple[int, int] | None:
    """Return nodes and copies of a random network such as `barabasi12*20`; None for other names."""
    found = _DRAWN.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2] or 1))


def shipped_names() -> list[str]:
    """Return the names of the instances that ship with the package."""
    return sorted(file.stem for file in SHIPPED.glob("*.json"))


class MultihopSettings(Config):
    """Networks, their traffic, and the costs; shared by both ways to route."""

    networks: tuple[str, ...] = Field(("two-path",), min_length=1)
    """Names or files of the networks; each world samples one at reset."""
    network_seed: int = Field(0, ge=0, lt=2**63)
    """Random seed of the random networks, independent of the seed of the environment."""
    network_load: RealRange = 0.8
    """Traffic of random networks, as a fraction of their capacity, or the range from which each network
    samples its own."""
    reward_scale: float = Field(1.0, gt=0.0, le=REAL)
    """Divisor of the costs."""
    max_steps: int = Field(1000, gt=0, le=FRAMES)
    """Slots of an episode."""

    @field_validator("networks")
    @classmethod
    def _networks_are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            drawn = parse_drawn(name)
            if drawn is not None and (drawn[0] < 4 or drawn[1] < 1):
                raise ValueError(f"{name}: give at least four nodes and one copy")
            if drawn is None and not name.endswith(".json") and name not in shipped_names():
                known = ", ".join(shipped_names())
                raise ValueError(
                    f"{name!r} is not a network: use {known}, barabasi12*20, or a path that ends in .json"
                )
        return names

    @field_validator("network_load")
    @classmethod
    def _load_is_positive(cls, load: RealRange) -> RealRange:
        if not 0.0 < lower_bound(load) <= upper_bound(load):
            raise ValueError(f"a load is above zero, got {load}")
        return load


class MultihopConfig(MultihopSettings):
    """Multi-class multi-hop networks; the environment card explains each setting."""

    removed: ClassVar[Mapping[str, Any]] = {"overflow_cost": None}

    max_backlog: float = Field(1000.0, gt=0.0, le=REAL)
    """Number of waiting packets above which an episode is truncated; that slot costs as many
    in addition."""
    idle_allowed: bool = True
    """Whether a link may always stay idle; otherwise only if it cannot carry anything."""
    prior: Literal["none", "backpressure", "spbp", "length-backpressure"] = "none"
    """Baseline whose scores are observed as `action_prior`, for models with `model.prior`: positive for the
    class that the baseline sends on a link, and larger the higher its pressure."""


class LengthsConfig(MultihopSettings):
    """Lengths of links for BackPressure, decided by a policy; the environment card explains each setting."""

    hold: Annotated[int, Field(ge=1, le=FRAMES)] | Literal["episode"] = "episode"
    """Slots for which lengths stay the same, or `episode`."""
    flow_features: bool = True
    """Whether links have features of the flow with the least total delay: utilisation, and marginal delay."""
    prior: Literal["none", "length-backpressure", "flow-backpressure"] = "none"
    """Baseline whose lengths are observed as `action_prior`, for models with `model.prior`."""
