"""Settings of reasoning. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgewise.config.bounds import FRAMES, NODES, ROWS, WIDTH
from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, lower_bound


class ReasoningConfig(Config):
    """Queries, facts and rules, actions and rewards."""

    removed: ClassVar[Mapping[str, Any]] = {
        "skip_unary": False,
        "skip_limit": 20,
        "use_domains": True,
        "with_rules_only": True,
    }

    data: str = "countries_s3"
    """Folder with train.txt, valid.txt, test.txt and rules, or the name of a dataset of the package."""
    rules: str | None = None
    """Rule file in that folder; none for `rules.txt`."""
    split: Literal["train", "valid", "test"] = "train"
    """Split from which queries are taken. Facts are always those of the training split, without the query."""
    withheld: float = Field(0.0, ge=0, lt=1)
    """Fraction of the facts that are hidden, always the same ones, so that training needs other proofs."""
    mode: Literal["train", "eval"] = "train"
    """`train` samples queries randomly and corrupts some; `eval` takes the queries of a list in order."""
    view: Literal["padded", "state"] = "padded"
    """`padded` observes all successors, up to `max_successors`; `state` observes the goal and their
    number."""

    max_atoms: int = Field(6, ge=1, le=WIDTH)
    """Maximum atoms of a goal; longer successors are dropped."""
    max_successors: int = Field(20, ge=3, le=NODES)
    """Maximum successors of a goal, including actions that end the proof; more are dropped, and counted."""
    max_steps: int = Field(20, gt=0, le=FRAMES)
    """Steps after which a proof is truncated."""
    limit_fails: bool = False
    """Whether the last step terminates the proof as failed, with its reward, instead of truncating it."""
    memory: bool = True
    """Whether goals visited before in the episode are removed from the successors."""
    give_up: bool = True
    """Whether there is an action `Endf` that ends the proof as failed."""
    claim: bool = False
    """Whether there is an action `Endt` that ends the proof as successful."""
    assume: bool = False
    """Whether there is an action `<predicate>_kge` that accepts a ground first atom by its embedding
    score."""

    reward: int = Field(4, ge=0, le=5)
    """Row of the reward table, 0 to 5."""
    negative_ratio: int = Field(1, ge=0, le=ROWS)
    """Corrupted queries per true query."""
    corrupt: Literal["head", "tail", "both"] = "tail"
    """Which entity of a query is replaced, by one of the same domain if the data has domains."""
    proof_depths: WholeRange | None = None
    """Range of the number of steps of the shortest proof of sampled queries; none for all queries."""

    @property
    def num_ends(self) -> int:
        """Number of actions in addition to the successors of resolution."""
        return int(self.give_up) + int(self.claim) + int(self.assume)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_successors <= self.num_ends:
            raise ValueError(
                f"max_successors {self.max_successors} leaves no room next to {self.num_ends} other actions"
            )
        if self.proof_depths is not None and lower_bound(self.proof_depths) < 1:
            raise ValueError(f"a proof has at least 1 step, got proof_depths {self.proof_depths}")
        return self
