"""Settings of the proof policy. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from edgewise.config.bounds import DEPTH, REAL, WIDTH
from edgewise.config.model import Config


class ProofConfig(Config):
    """Settings of the policy that selects proof steps, and of its critic."""

    removed: ClassVar[Mapping[str, Any]] = {
        "kge": None,
        "initialise": False,
        "fusion": 0.0,
        "keep_best": None,
        "shaping": 0.0,
    }

    builder: ClassVar[str] = "edgewise.systems.reasoning.models.build:build_prover"

    encoder: Literal["graph", "dot"] = "graph"
    """`graph` passes messages between atoms and the terms they share, and scores a step by a network; `dot`
    embeds a goal as the mean of predicate + head - tail, and scores a step by a dot product."""
    hidden: int = Field(64, ge=1, le=WIDTH)
    """Width of every embedding."""
    rounds: int = Field(2, ge=1, le=DEPTH)
    """Rounds of message passing, or residual blocks of `dot`."""
    entities: bool = False
    """Whether constants have their own embeddings under `graph`; under `dot` they always have."""
    entity_scale: float = Field(0.1, gt=0, le=REAL)
    """Standard deviation of entity embeddings at initialisation."""
    counts: bool = True
    """Whether the number of facts that match an atom is a feature of it, under `graph`."""
    prior: float = Field(0.0, ge=0, le=REAL)
    """Weight of the logarithm of a rule's weight, such as its confidence, in the logit of its successor."""
    evidence: bool = False
    """Whether weight and support of a rule are features of its successor, under `graph`."""
    policy_gain: float = Field(0.1, gt=0, le=REAL)
    """Gain of the orthogonal initialisation of the last policy layer; a small gain makes the initial policy
    almost uniform."""
    temperature: float = Field(0.2, gt=0, le=REAL)
    """Divisor of the logits of `dot`, whose states have length 1."""

    @property
    def reads_matches(self) -> bool:
        """Whether the policy reads how many facts match each atom."""
        return self.counts and self.encoder == "graph"
