"""Settings of reasoning. Never imports torch."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from edgewise.config.model import Config
from edgewise.envs.ranges import WholeRange, lowest


class ReasoningConfig(Config):
    """Which queries are to be proved, from which facts and rules, and what a proof is worth."""

    data: str = "countries_s3"
    """A folder with train.txt, valid.txt, test.txt and rules, or the name of a dataset of the package."""
    rules: str | None = None
    """A rule file of that folder; `rules.txt` if not given."""
    split: Literal["train", "valid", "test"] = "train"
    """Where queries come from. Facts are always the training set's, without the query itself."""
    withheld: float = Field(0.0, ge=0, lt=1)
    """Share of the facts that are out of reach, always the same ones: training must then find other ways."""
    mode: Literal["train", "eval"] = "train"
    """`train` draws queries at random and corrupts some; `eval` walks a list of queries in order."""
    view: Literal["padded", "state"] = "padded"
    """`padded` shows all successors, up to `max_successors`; `state` the goal and how many there are."""

    max_atoms: int = Field(6, ge=1)
    """Atoms a goal has room for; longer successors are left out."""
    max_successors: int = Field(20, ge=3)
    """Successors a goal can have, actions that end the proof included; more are left out, and counted."""
    max_steps: int = Field(20, gt=0)
    """Steps after which a proof is cut off."""
    limit_fails: bool = False
    """Whether the last step counts as a failure, with its reward, and not as a cut that bootstraps."""
    memory: bool = True
    """Whether goals met before in the episode are left out of the successors."""
    skip_unary: bool = False
    """Whether goals with a single successor are passed over."""
    skip_limit: int = Field(20, ge=1)
    """How many such goals in a row, before the proof is cut off."""
    give_up: bool = True
    """Whether there is an action `Endf` that ends the proof as failed."""
    claim: bool = False
    """Whether there is an action `Endt` that ends the proof as successful."""
    assume: bool = False
    """Whether a ground first atom can be taken on the word of an embedding, an action `<predicate>_kge`."""

    reward: int = Field(4, ge=0, le=5)
    """Which row of the reward table, 0 to 5."""
    negative_ratio: int = Field(1, ge=0)
    """Corrupted queries for every true one."""
    corrupt: Literal["head", "tail", "both"] = "tail"
    """Which entity of a query is replaced."""
    use_domains: bool = True
    """Whether the replacement is of the same domain, where the data has domains."""
    with_rules_only: bool = True
    """Whether only queries are drawn whose predicate some rule concludes."""
    proof_depths: WholeRange | None = None
    """Draw only queries whose shortest proof has so many steps; all if not given."""

    @property
    def num_ends(self) -> int:
        """Actions beside the successors that resolution gives."""
        return int(self.give_up) + int(self.claim) + int(self.assume)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_successors <= self.num_ends:
            raise ValueError(
                f"max_successors {self.max_successors} leaves no room beside {self.num_ends} other actions"
            )
        if self.proof_depths is not None and lowest(self.proof_depths) < 1:
            raise ValueError(f"a proof has at least 1 step, got proof_depths {self.proof_depths}")
        return self
