"""Settings of the `multihop` environment, and the short names its networks go by."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, field_validator

from edgewise.config.model import Config

SHIPPED = Path(__file__).parent / "instances"
_DRAWN = re.compile(r"barabasi(\d+)(?:\*(\d+))?")


def parse_drawn(name: str) -> tuple[int, int] | None:
    """Nodes and copies of a drawn network, `barabasi12*20`; None for the name of a file."""
    found = _DRAWN.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2] or 1))


def shipped_names() -> list[str]:
    """The instances that come with the package."""
    return sorted(file.stem for file in SHIPPED.glob("*.json"))


class MultihopConfig(Config):
    """Multi-class multi-hop networks; the env card says what each setting does."""

    networks: tuple[str, ...] = Field(("two-path",), min_length=1)
    """Names or files of the networks; each world draws one at reset."""
    network_seed: int = Field(0, ge=0, lt=2**63)
    """Fixes the drawn networks, whatever the seed of the environment."""
    network_load: float = Field(0.8, gt=0.0)
    """Traffic of drawn networks, as a share of what they can carry."""
    idle_allowed: bool = True
    """Whether a link may always carry nothing; else only when it could carry nothing anyway."""
    max_backlog: float = Field(1000.0, gt=0.0)
    """An episode is truncated when more packets wait."""
    overflow_cost: float | None = Field(None, ge=0.0)
    """Cost of that slot on top; `max_backlog` where not given."""
    reward_scale: float = Field(1.0, gt=0.0)
    """Costs are divided by it."""
    max_steps: int = Field(1000, gt=0)
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
                    f"{name!r} is no network: use {known}, barabasi12*20, or a path that ends in .json"
                )
        return names
