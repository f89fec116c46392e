"""Settings of the on-policy algorithms and of imitation. Never imports torch, so that errors are quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgewise.algorithms.self_play_settings import SelfPlaySettings
from edgewise.config.bounds import FRAMES, REAL, ROWS
from edgewise.config.model import AppliesIf, Config

IF_RECURRENT = AppliesIf("model.recurrent is true", lambda run, _: getattr(run.model, "recurrent", False))
IF_INTERVENTION = AppliesIf("there is an intervention", lambda _, own: own.intervention is not None)
IF_PRIOR = AppliesIf("model.prior is set", lambda run, _: getattr(run.model, "prior", None) is not None)
IF_LEADER = AppliesIf("credit is leader", lambda _, own: own.credit == "leader")
IF_GREEDY = AppliesIf("baseline is greedy", lambda _, own: own.baseline == "greedy")


class PriorSettings(Config):
    """How much the prior of the model counts, if it has one."""

    prior_weight: Annotated[float | None, IF_PRIOR] = Field(None, ge=0, le=100)
    """Weight of `action_prior`, in place of the one that is learned. A schedule towards 0 lets the rule fade
    out."""


class PPOConfig(PriorSettings):
    """Proximal policy optimisation. Every number that is not in `fixed` can be scheduled by its name."""

    removed: ClassVar[Mapping[str, Any]] = {
        "normalise_advantage": True,
        "value_decay": 0.99,
        "average_decay": 0.9,
        "two_player": False,
        "adam_epsilon": 1e-5,
    }

    fixed: ClassVar[tuple[str, ...]] = ("intervention_above",)
    two_player: ClassVar[bool] = False
    """Whether rewards are from the view of the player who moved."""
    adam_epsilon: ClassVar[float] = 1e-5
    """Epsilon of Adam."""

    gamma: float = Field(0.99, ge=0, le=1)
    """Discount factor."""
    lmbda: float = Field(0.95, ge=0, le=1)
    """Lambda of GAE: 0 uses one-step advantages of the critic, 1 uses full returns."""
    learning_rate: float = Field(5e-4, ge=0, le=REAL)
    """Learning rate of Adam, for actor and critic."""
    epochs: int = Field(4, ge=1, le=ROWS)
    """Passes over each batch."""
    minibatch_size: int = Field(256, ge=1, le=ROWS)
    """Graphs per minibatch; a graph is one step of one world with all its agents."""
    chunk_length: Annotated[int, IF_RECURRENT] = Field(5, ge=1, le=ROWS)
    """Maximum length of the sequences that a recurrent model is trained on; it is reduced to a divisor of the
    rollout length."""
    clip: float = Field(0.2, gt=0, le=REAL)
    """Clipping range of the probability ratio around 1."""
    value_clip: float | None = Field(None, gt=0, le=REAL)
    """Clipping range of the value around the old value; none for no clipping."""
    value_coefficient: float = Field(0.5, ge=0, le=REAL)
    """Weight of the value loss."""
    huber_delta: float | None = Field(None, gt=0, le=REAL)
    """Error above which the value loss is linear (Huber loss); none for the squared error."""
    entropy_coefficient: float = Field(0.01, ge=0, le=REAL)
    """Weight of the entropy bonus."""
    max_grad_norm: float = Field(0.5, gt=0, le=REAL)
    """Gradients are clipped to this norm, separately for actor and critic unless they share an encoder."""
    target_kl: float | None = Field(None, gt=0, le=REAL)
    """KL divergence above which no further epoch begins; none for no limit."""
    normalise_value: bool = False
    """Whether the critic predicts returns normalised by their running mean and standard deviation."""
    value_chunk_size: int | None = Field(None, ge=1, le=ROWS)
    """Maximum number of graphs that the critic evaluates at once; none for a value that suits the device."""
    boundary_budget: int | None = Field(None, ge=0, le=ROWS)
    """Number of truncations per row to allocate, so that a GPU needs no synchronisation; none to count
    them."""
    average_reward: bool = False
    """Whether to optimise the average reward: rewards are reduced by their long-run mean, and gamma is 1."""
    intervention: str | None = None
    """Baseline of the environment that acts in worlds with a high load; none for no intervention."""
    intervention_above: Annotated[float, IF_INTERVENTION] = Field(100.0, ge=0, le=REAL)
    """Load above which the baseline acts; its steps are not used for the policy loss."""

    @model_validator(mode="after")
    def _average_is_undiscounted(self) -> Self:
        if self.average_reward and self.gamma != 1.0:
            raise ValueError(f"average_reward is undiscounted: set gamma to 1, got {self.gamma}")
        if self.average_reward and self.two_player:
            raise ValueError("average_reward is for one player, and this is a game of two")
        return self


class CloneConfig(Config):
    """Imitation of an expert. Every number can be scheduled by its name."""

    expert: str | None = None
    """Baseline of the environment to imitate; the recipe sets it."""
    expert_share: float = Field(1.0, ge=0, le=1)
    """Fraction of steps in which the expert acts: 1 is behaviour cloning, a schedule towards 0 is DAgger."""
    learning_rate: float = Field(1e-3, ge=0, le=REAL)
    """Learning rate of Adam, for the actor."""
    updates: int = Field(32, ge=1, le=ROWS)
    """Gradient steps after each batch."""
    minibatch_size: int = Field(512, ge=1, le=ROWS)
    """Graphs per minibatch, sampled from the buffer."""
    buffer_size: int | None = Field(None, ge=1, le=ROWS)
    """Number of latest labelled graphs to keep; none to keep all, as in DAgger."""
    max_grad_norm: float = Field(1.0, gt=0, le=REAL)
    """Gradients are clipped to this norm."""


class APGConfig(PriorSettings):
    """Analytic policy gradients. Every number can be scheduled by its name."""

    horizon: int = Field(10, ge=1, le=ROWS)
    """Steps that are simulated from each state; rewards after them are not seen."""
    through_observations: bool = True
    """Whether gradients also pass through observations, so that an action counts for how the policy reacts to
    it. Without, later actions are taken as fixed; gradients through many steps then do not explode."""
    learning_rate: float = Field(1e-3, ge=0, le=REAL)
    """Learning rate of Adam."""
    updates: int = Field(10, ge=1, le=ROWS)
    """Gradient steps after each batch."""
    minibatch_size: int = Field(64, ge=1, le=ROWS)
    """States of a gradient step to start from, sampled from the batch."""
    max_grad_norm: float = Field(1.0, gt=0, le=REAL)
    """Gradients are clipped to this norm."""


class ReinforceConfig(PriorSettings):
    """REINFORCE on whole episodes. Every number that is not in `fixed` can be scheduled by its name."""

    fixed: ClassVar[tuple[str, ...]] = (
        "starts",
        "symmetries",
        "longest_episode",
        "challenge_every",
        "challenge_instances",
        "significance",
    )

    baseline: Literal["shared", "greedy", "mean", "none"] = "shared"
    """What is subtracted from the return of an episode: `shared`, the mean over the episodes of the same
    instance (POMO); `greedy`, the return of a frozen copy of the policy that acts by its mode; `mean`, the
    mean over the batch; or `none`."""
    credit: Literal["advantage", "leader", "best"] = "advantage"
    """How actions are weighted: `advantage`, return minus baseline, as in REINFORCE; `leader`, the same with
    the advantage of the best episode of each instance multiplied by `leader_weight`
    (https://arxiv.org/abs/2405.13947); `best`, imitation of the best episode of each instance alone, without
    a baseline (self-labelling, https://arxiv.org/abs/2401.11849)."""
    leader_weight: Annotated[float, IF_LEADER] = Field(4.0, ge=1, le=REAL)
    """Factor of the advantage of the best episode, if `credit` is `leader`."""
    starts: int = Field(8, ge=1, le=ROWS)
    """Episodes of each instance in a batch, played side by side: a batch has `num_envs / starts` instances,
    rounded down."""
    symmetries: int = Field(1, ge=1, le=ROWS)
    """Views of each instance, each under another symmetry of the environment, drawn at random. They share the
    episodes and the baseline of the instance, so that the policy learns the same in each view; each is
    encoded by itself. 1 shows instances as they are."""
    first_actions: Literal["sampled", "different"] = "sampled"
    """`different` draws another legal first action for each episode of an instance, so that all are explored.
    The policy learns its own first action from them by importance weights: use it where many first actions
    can lead to a good return, such as the first city of a round trip."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount factor."""
    learning_rate: float = Field(1e-3, ge=0, le=REAL)
    """Learning rate of Adam."""
    entropy_coefficient: float = Field(0.0, ge=0, le=REAL)
    """Weight of the entropy bonus, which is added to the reward of every step."""
    max_grad_norm: float = Field(1.0, gt=0, le=REAL)
    """Gradients are clipped to this norm."""
    minibatch_size: int = Field(4096, ge=1, le=ROWS)
    """Graphs per backward pass. Gradients are summed over a batch before its one optimizer step, so this
    changes memory and not the result."""
    longest_episode: int = Field(1000, ge=1, le=FRAMES)
    """Steps after which an episode counts as endless, where the environment has no `max_steps`; the run is
    then refused."""
    challenge_every: Annotated[int, IF_GREEDY] = Field(50, ge=1, le=FRAMES)
    """Batches between comparisons of the policy with its frozen copy, if the baseline is `greedy`."""
    challenge_instances: Annotated[int, IF_GREEDY] = Field(256, ge=2, le=ROWS)
    """Instances of such a comparison."""
    significance: Annotated[float, IF_GREEDY] = Field(0.05, gt=0, lt=1)
    """The policy replaces its frozen copy if a paired one-sided t-test gives a p-value below this."""

    @model_validator(mode="after")
    def _shared_needs_several(self) -> Self:
        if self.starts % self.symmetries:
            raise ValueError(
                f"symmetries: got {self.symmetries}, but the {self.starts} starts of an instance are divided "
                "between its views: expected a number that divides them"
            )
        if self.credit != "advantage" and self.starts < 2:
            raise ValueError(
                f"credit {self.credit} compares episodes of an instance: expected 2 starts or more"
            )
        if self.baseline == "shared" and self.starts < 2:
            raise ValueError(
                f"baseline shared compares episodes of an instance: use 2 starts or more, got {self.starts}"
            )
        return self


class EvolutionConfig(PriorSettings):
    """Evolution strategies. Every number that is not in `fixed` can be scheduled by its name."""

    fixed: ClassVar[tuple[str, ...]] = ("pairs", "longest_episode")

    pairs: int = Field(16, ge=1, le=ROWS)
    """Pairs of candidates with opposite noise. Each candidate plays in `num_envs / (2 * pairs)` worlds,
    rounded down, which are the same for all of them."""
    sigma: float = Field(0.05, gt=0, le=REAL)
    """Standard deviation of the noise that candidates add to the weights of the policy."""
    ranks: Literal["world", "mean"] = "world"
    """What candidates are ranked by: `world`, their mean rank over worlds, each of which counts the same
    whatever the scale of its rewards; `mean`, their mean return."""
    learning_rate: float = Field(1e-2, ge=0, le=REAL)
    """Learning rate of Adam."""
    weight_decay: float = Field(0.0, ge=0, le=REAL)
    """Weight of the squared norm of all weights, relative to the gradient of the ranks."""
    longest_episode: int = Field(1000, ge=1, le=FRAMES)
    """Steps after which an episode counts as endless, where the environment has no `max_steps`; the run is
    then refused."""


class SelfPlayConfig(SelfPlaySettings, PPOConfig):
    """PPO for games of two players, against the current policy and snapshots of it."""

    removed: ClassVar[Mapping[str, Any]] = {"two_player": True}

    fixed: ClassVar[tuple[str, ...]] = (*PPOConfig.fixed, *SelfPlaySettings.self_play_fixed)
    two_player: ClassVar[bool] = True
