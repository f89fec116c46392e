"""How each algorithm learns, said without torch, so that mistakes show before anything slow is imported."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgewise.config.model import Config


class PPOConfig(Config):
    """Proximal policy optimisation; every number that is not fixed may be scheduled by its name."""

    fixed: ClassVar[tuple[str, ...]] = ("intervention_above",)

    gamma: float = Field(0.99, ge=0, le=1)
    """Discount of a reward one step ahead."""
    lmbda: float = Field(0.95, ge=0, le=1)
    """Trace decay of advantages: 0 trusts the critic alone, 1 the rewards seen."""
    learning_rate: float = Field(5e-4, ge=0)
    """Step size of Adam, for actor and critic."""
    epochs: int = Field(4, ge=1)
    """Passes over each batch."""
    minibatch_size: int = Field(256, ge=1)
    """Graphs in one update; a graph is one step of one world with all its agents."""
    chunk_length: int = Field(5, ge=1)
    """Steps in a row through which a recurrent model learns, at most: as many as divide a rollout evenly."""
    clip: float = Field(0.2, gt=0)
    """How far the probability ratio may leave 1 before it earns nothing more."""
    value_clip: float | None = Field(None, gt=0)
    """How far a value may leave the old one likewise; none for no bound."""
    value_coefficient: float = Field(0.5, ge=0)
    """Weight of the critic's error."""
    huber_delta: float | None = Field(None, gt=0)
    """Error beyond which the critic's loss grows linearly; none for squared error throughout."""
    entropy_coefficient: float = Field(0.01, ge=0)
    """Weight of the entropy bonus."""
    max_grad_norm: float = Field(0.5, gt=0)
    """Gradients longer than this are shortened to it, those of actor and critic apart unless they share."""
    target_kl: float | None = Field(None, gt=0)
    """No further epoch is begun once one has moved the policy by more than this; none for no bound."""
    normalise_advantage: bool = True
    """Whether advantages get mean 0 and deviation 1 over the batch, active agents only."""
    normalise_value: bool = False
    """Whether the critic predicts in units of its returns' running deviation."""
    value_decay: float = Field(0.99, ge=0, lt=1)
    """How much of the running statistics of returns a batch keeps, where values are normalised."""
    value_chunk_size: int | None = Field(None, ge=1)
    """Most graphs that the critic values at once; none for what suits the device."""
    boundary_budget: int | None = Field(None, ge=0)
    """Truncations within a row for which room is kept, for a GPU that must never wait; none to count them."""
    two_player: bool = False
    """Whether two players move in turn or not in turn, and rewards are in the view of the one who moved."""
    adam_epsilon: float = Field(1e-5, gt=0)
    """Added to the root of Adam's second moment."""
    average_reward: bool = False
    """Whether rewards count by how far they exceed their long-run mean, without a discount: gamma is 1."""
    average_decay: float = Field(0.9, ge=0, lt=1)
    """How much of the estimate of that mean a batch keeps."""
    intervention: str | None = None
    """The environment's baseline that acts in worlds under strain; none for none."""
    intervention_above: float = Field(100.0, ge=0)
    """The strain, such as packets that wait, above which it acts; its steps do not teach the policy."""

    @model_validator(mode="after")
    def _average_is_undiscounted(self) -> Self:
        if self.average_reward and self.gamma != 1.0:
            raise ValueError(f"average_reward has no discount: set gamma to 1, got {self.gamma}")
        if self.average_reward and self.two_player:
            raise ValueError("average_reward is for one player: leave two_player off")
        return self


class CloneConfig(Config):
    """Imitation of an expert; every number may be scheduled over a run by its name."""

    expert: str | None = None
    """The environment's baseline to imitate; a recipe names one."""
    expert_share: float = Field(1.0, ge=0, le=1)
    """Share of steps in which the expert leads: 1 is behaviour cloning, a schedule towards 0 is DAgger."""
    learning_rate: float = Field(1e-3, ge=0)
    """Step size of Adam, for the actor."""
    updates: int = Field(32, ge=1)
    """Steps of the optimiser after each batch."""
    minibatch_size: int = Field(512, ge=1)
    """Graphs in one update, drawn from the buffer."""
    buffer_size: int | None = Field(None, ge=1)
    """Labelled graphs that are kept, the newest; none to keep all, as DAgger does."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients longer than this are shortened to it."""


class SelfPlayConfig(PPOConfig):
    """PPO on games of two players, against itself and against snapshots of itself."""

    fixed: ClassVar[tuple[str, ...]] = (
        *PPOConfig.fixed,
        "pool_share",
        "pool_size",
        "snapshot_every",
        "opponents",
        "gate",
        "gate_games",
    )

    two_player: bool = True
    """Whether rewards are in the view of the one who moved; in self-play they are."""
    pool_share: float = Field(0.25, ge=0, le=1)
    """Share of the games that are played against snapshots; the others against itself."""
    pool_size: int = Field(8, ge=1)
    """Snapshots that are kept; the oldest gives way."""
    snapshot_every: int = Field(10, ge=1)
    """Batches between snapshots."""
    opponents: int = Field(2, ge=1)
    """Different snapshots that are met in one batch."""
    matchmaking: Literal["latest", "uniform", "hard", "variance"] = "variance"
    """Whom to meet: the newest, any, or by score x those for which (1 - x)² or x (1 - x) is large."""
    gate: float | None = Field(None, gt=0, lt=1)
    """Largest chance that a snapshot no better than the newest is let in; none to let all in."""
    gate_games: int = Field(400, ge=2)
    """Most games that a snapshot plays the newest to be let in."""
