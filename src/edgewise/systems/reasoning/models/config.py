"""Settings of the policy over proof steps, without torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from edgewise.config.model import Config


class ProofConfig(Config):
    """A policy that chooses the next step of a proof, and the critic that goes with it.

    Attributes:
        encoder: `graph` passes messages between atoms and the terms they share and scores a step by a
            network; `dot` is the mean of predicate + head - tail and scores by a dot product.
        hidden: width of every embedding.
        rounds: of messages, or residual blocks of `dot`.
        entities: whether constants have embeddings of their own under `graph`; `dot` always has them.
        entity_scale: deviation of those at initialisation.
        counts: whether an atom knows how many facts match it, under `graph`.
        policy_gain: orthogonal gain of the last layer of the policy; small makes the first policy near
            uniform.
        temperature: that logits of `dot` are divided by, states being of length 1.
        kge: a folder that `edgewise kge` wrote; what follows needs it.
        initialise: whether entities begin with their vectors there, projected to `hidden`.
        fusion: how much of the log-probability there of a successor's first atom, where it has no variable,
            is added to its logit.
        keep_best: of successors whose first atom has no variable only so many can be chosen, those that are
            the most probable there; None for all. Other successors, and ends, always can.
        shaping: weight of a potential, the same log-probability of a goal's first atom, in the reward.
    """

    builder: ClassVar[str] = "edgewise.systems.reasoning.build:build_prover"

    encoder: Literal["graph", "dot"] = "graph"
    hidden: int = Field(64, ge=1)
    rounds: int = Field(2, ge=1)
    entities: bool = False
    entity_scale: float = Field(0.1, gt=0)
    counts: bool = True
    policy_gain: float = Field(0.1, gt=0)
    temperature: float = Field(0.2, gt=0)
    kge: str | None = None
    initialise: bool = False
    fusion: float = Field(0.0, ge=0)
    keep_best: int | None = Field(None, ge=1)
    shaping: float = Field(0.0, ge=0)

    @model_validator(mode="after")
    def _has_what_begins(self) -> ProofConfig:
        if self.initialise and self.encoder == "graph" and not self.entities:
            raise ValueError("initialise=true needs entities=true: entities have no embeddings to begin with")
        return self
