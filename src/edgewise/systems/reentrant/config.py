"""Settings of the re-entrant queueing networks, and names of their networks."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from edgewise.config.bounds import FRAMES, REAL
from edgewise.config.model import Config

LONGEST_LINE = 50
"""Largest number of servers of a generated network."""
_FAMILY = re.compile(r"(re-reentrant|reentrant)(\d+)(?:\*(\d+))?")


def parse_family(name: str) -> tuple[str, int, int | None] | None:
    """Return family, servers and copies of a name such as `reentrant5` or `reentrant5*8`; None for others."""
    found = _FAMILY.fullmatch(name)
    return None if found is None else (found[1], int(found[2]), int(found[3]) if found[3] else None)


class ReentrantSettings(Config):
    """Networks, initial states and the length of an episode; shared by both ways to serve."""

    networks: tuple[str, ...] = Field(("reentrant2",), min_length=1)
    """Names or files of the networks; each world samples one at reset. `reentrant5` and `re-reentrant5` are
    generated, with five servers; `reentrant5*8` are eight of them with random service times."""
    network_seed: int = Field(0, ge=0, lt=2**63)
    """Random seed of random service times, independent of the seed of the environment."""
    initial_jobs: float = Field(0.0, ge=0, le=1e6)
    """Mean number of jobs in each queue at the beginning; each is geometric."""
    reward_scale: float = Field(1.0, gt=0.0, le=REAL)
    """Divisor of the costs."""

    @field_validator("networks")
    @classmethod
    def _networks_are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            family = parse_family(name)
            if family is None and not name.endswith(".json"):
                raise ValueError(
                    f"{name!r} is not a network: use reentrant5, re-reentrant5, reentrant5*8, or a path that "
                    "ends in .json"
                )
            if family is not None and (not 2 <= family[1] <= LONGEST_LINE or family[2] == 0):
                raise ValueError(f"{name}: give 2 to {LONGEST_LINE} servers, and one copy or more")
        return names


class ReentrantConfig(ReentrantSettings):
    """Choose what every server works on, at every arrival and every end of a service."""

    prior: Literal["none", "cmu", "maxweight", "backpressure", "root-backpressure", "srpt"] = "none"
    """Baseline whose scores are observed as `action_prior`, for models with `model.prior`."""
    max_steps: int = Field(1000, gt=0, le=FRAMES)
    """Events of an episode: arrivals and ends of services."""


class PotentialsConfig(ReentrantSettings):
    """Give queues potentials, by which a rule chooses what every server works on."""

    hold: Annotated[int, Field(ge=1, le=FRAMES)] | Literal["episode"] = "episode"
    """Steps for which potentials stay the same, or `episode`."""
    events_per_step: int = Field(50, ge=1, le=10_000)
    """Events that are simulated in a step."""
    max_steps: int = Field(40, gt=0, le=FRAMES)
    """Steps of an episode."""
