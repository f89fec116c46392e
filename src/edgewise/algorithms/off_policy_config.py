"""Settings of the off-policy algorithms. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from edgewise.algorithms.self_play_settings import SelfPlaySettings
from edgewise.config.bounds import FRAMES, REAL, ROWS, WIDTH, Real
from edgewise.config.model import AppliesIf, Config

IF_RECURRENT = AppliesIf("model.recurrent is true", lambda run, _: getattr(run.model, "recurrent", False))
IF_PRIORITISED = AppliesIf("prioritised is true", lambda _, own: own.prioritised)
IF_EXPERT = AppliesIf("there is an expert", lambda _, own: own.expert is not None)
IF_RISK = AppliesIf("risk is not mean", lambda _, own: own.risk != "mean")
IF_ADAPTIVE = AppliesIf("risk is adaptive", lambda _, own: own.risk == "adaptive")


class OffPolicyConfig(Config):
    """Settings shared by the off-policy algorithms.

    Every number that is not in `fixed` can be scheduled by its name. A frame is one step of one
    world; a transition is one step of one agent.
    """

    removed: ClassVar[Mapping[str, Any]] = {"adam_epsilon": 1e-8}

    fixed: ClassVar[tuple[str, ...]] = ("gamma", "n_step", "minibatch_size", "replay_size", "alpha")
    adam_epsilon: ClassVar[float] = 1e-8
    """Epsilon of Adam."""

    gamma: float = Field(0.99, ge=0, le=1)
    """Discount factor."""
    n_step: int = Field(1, ge=1, le=127)
    """Steps between the first and the last observation of a transition."""
    learning_rate: float = Field(5e-4, ge=0, le=REAL)
    """Learning rate of Adam, for every network."""
    max_grad_norm: float = Field(5.0, gt=0, le=REAL)
    """Gradients are clipped to this norm, separately for each network."""
    minibatch_size: int = Field(256, ge=1, le=ROWS)
    """Transitions per minibatch."""
    updates_per_transition: float = Field(1 / 32, ge=0, le=REAL)
    """Gradient steps per collected transition; fractions carry over to the next batch."""
    learning_starts: int = Field(2000, ge=0, le=FRAMES)
    """Frames to collect before the first update."""
    target_interval: int = Field(1, ge=1, le=FRAMES)
    """Updates between two updates of the target networks."""
    tau: float = Field(0.01, gt=0, le=1)
    """Polyak coefficient of the target networks; 1 copies the networks."""
    epsilon: float = Field(0.05, ge=0, le=1)
    """Fraction of decisions that are random during collection (epsilon-greedy)."""
    replay_size: int = Field(1_000_000, ge=1, le=ROWS)
    """Capacity of the replay buffer, in transitions."""
    replay_storage: Literal["memory", "memmap"] = "memory"
    """Whether the replay buffer is on the device (`memory`), or in a file that may exceed memory
    (`memmap`)."""
    prioritised: bool = False
    """Whether transitions are sampled by priority, which is their error."""
    alpha: Annotated[float, IF_PRIORITISED] = Field(0.5, ge=0, le=1)
    """Exponent of the priority; 0 samples uniformly."""
    beta: Annotated[float, IF_PRIORITISED] = Field(0.4, ge=0, le=1)
    """Exponent of the importance weights; 1 corrects the sampling bias fully. Usually scheduled to rise to
    1."""
    expert: str | None = None
    """Baseline of the environment that acts in part of the collection; none for no expert."""
    expert_share: Annotated[float, IF_EXPERT] = Field(0.0, ge=0, le=1)
    """Fraction of worlds and steps in which the expert acts."""
    cloning_coefficient: Annotated[float, IF_EXPERT] = Field(0.0, ge=0, le=REAL)
    """Weight of a behaviour-cloning loss on the actions in the replay buffer; for buffers filled by an
    expert."""


class SequenceConfig(OffPolicyConfig):
    """Settings shared by algorithms that learn from sequences if the model is recurrent (R2D2)."""

    fixed: ClassVar[tuple[str, ...]] = (*OffPolicyConfig.fixed, "chunk_length", "burn_in")

    chunk_length: Annotated[int, IF_RECURRENT] = Field(8, ge=1, le=FRAMES)
    """Steps of a sequence that a recurrent model is trained on."""
    burn_in: Annotated[int, IF_RECURRENT] = Field(4, ge=0, le=FRAMES)
    """Steps before them that only bring the stored hidden state up to date with the weights."""


class DQNConfig(SequenceConfig):
    """Deep Q-learning."""

    double: bool = True
    """Whether the online network selects the action that the target network evaluates (double DQN)."""
    dueling: bool = False
    """Whether the network has separate value and advantage streams (dueling DQN)."""
    noisy: bool = False
    """Whether the last layers are noisy (NoisyNet), for exploration without epsilon."""
    mixing: Literal["auto", "none", "sum", "monotone"] = "auto"
    """How the values of the deciders of a world become the value of the team: `none`, each learns from its
    own reward; `sum` (VDN) or `monotone` (QMIX), all learn from the sum of the rewards. `auto`: `none` if
    agents act, `sum` if edges or groups of edges do."""
    huber_delta: float = Field(1.0, gt=0, le=REAL)
    """Error above which the loss is linear (Huber loss). If it is below the size of rare high costs, values
    tend to the median of returns, which such costs hardly change."""
    retrace: float | None = Field(None, ge=0, le=1)
    """Trace decay of Retrace(lambda) over the `n_step` steps of a transition: a return is followed only as
    far as its actions are greedy. The replay buffer then holds all n steps. None for plain n-step returns."""

    @model_validator(mode="after")
    def _retrace_has_steps(self) -> Self:
        if self.retrace is not None and self.n_step == 1:
            raise ValueError("retrace needs an n_step of 2 or more: with one step there is nothing to trace")
        return self


class DistributionalConfig(OffPolicyConfig):
    """Settings shared by algorithms that learn return distributions: how much risk to take."""

    risk: Literal["mean", "cvar", "adaptive"] = "mean"
    """Objective over the return distribution: `mean`; `cvar`, the mean of the worst fraction `risk_alpha`;
    `adaptive`, a fraction that shrinks with the distance to the nearest object."""
    risk_alpha: Annotated[float, IF_RISK] = Field(0.5, gt=0, le=1)
    """Worst fraction of returns for `cvar`, and the smallest fraction for `adaptive`."""
    risk_reach: Annotated[float, IF_ADAPTIVE] = Field(10.0, gt=0, le=REAL)
    """Distance to the nearest object from which on `adaptive` uses all returns."""


class RainbowConfig(DistributionalConfig):
    """Rainbow: categorical returns, noisy and dueling layers, n-step returns, prioritised replay buffer."""

    fixed: ClassVar[tuple[str, ...]] = (*OffPolicyConfig.fixed, "atoms", "v_min", "v_max", "sigma")

    n_step: int = Field(3, ge=1, le=127)
    """Steps between the first and the last observation of a transition."""
    prioritised: bool = True
    """Whether transitions are sampled by priority, which is their error."""
    epsilon: float = Field(0.0, ge=0, le=1)
    """Fraction of decisions that are random during collection, in addition to the noisy layers."""
    atoms: int = Field(51, ge=2, le=WIDTH)
    """Number of atoms of the categorical return distribution (C51)."""
    v_min: Real = -20.0
    """Lowest return of the categorical distribution."""
    v_max: Real = 20.0
    """Highest return of the categorical distribution."""
    sigma: float = Field(0.5, ge=0, le=REAL)
    """Initial noise of the noisy layers."""

    @model_validator(mode="after")
    def _support_ascends(self) -> RainbowConfig:
        if self.v_min >= self.v_max:
            raise ValueError(f"v_min={self.v_min} must be below v_max={self.v_max}")
        return self


class IQNConfig(SequenceConfig, DistributionalConfig):
    """Implicit quantile networks for discrete actions."""

    double: bool = True
    """Whether the online network selects the action that the target network evaluates (double DQN)."""
    dueling: bool = False
    """Whether the network has separate value and advantage streams (dueling DQN)."""
    noisy: bool = False
    """Whether the last layers are noisy (NoisyNet), for exploration without epsilon."""
    quantiles: int = Field(8, ge=1, le=WIDTH)
    """Quantiles sampled per return in an update."""
    target_quantiles: int = Field(8, ge=1, le=WIDTH)
    """Quantiles sampled per target in an update."""
    acting_quantiles: int = Field(32, ge=1, le=WIDTH)
    """Quantiles whose mean selects an action, without exploration."""
    exploring_quantiles: int = Field(8, ge=1, le=WIDTH)
    """Quantiles whose mean selects an action during collection, and in targets."""
    kappa: float = Field(1.0, gt=0, le=REAL)
    """Error above which the loss is linear (quantile Huber loss)."""


class ContinuousConfig(OffPolicyConfig):
    """Settings shared by algorithms with a deterministic actor."""

    action_noise: float = Field(0.1, ge=0, le=REAL)
    """Standard deviation of normal noise on actions during collection, as a fraction of half their range."""
    actor_share: float = Field(1.0, gt=0, le=1)
    """Learning rate of the actor as a fraction of the critic's; below 1 the actor exploits fewer of the
    critic's errors."""
    target_noise: float = Field(0.0, ge=0, le=REAL)
    """Standard deviation of noise on target actions, clipped at twice that (target policy smoothing)."""


class DDPGConfig(ContinuousConfig):
    """Deep deterministic policy gradient."""

    mixing: Literal["auto", "none", "sum", "monotone"] = "auto"
    """How the values of the deciders of a world become the value of the team: `none`, each learns from its
    own reward; `sum` (VDN) or `monotone` (QMIX), all learn from the sum of the rewards. `auto`: `none` if
    agents act, `sum` if edges or groups of edges do."""
    huber_delta: float = Field(1.0, gt=0, le=REAL)
    """Error above which the value loss is linear (Huber loss), see `DQNConfig`."""


class ACIQNConfig(ContinuousConfig, DistributionalConfig):
    """A deterministic actor with an implicit quantile critic."""

    quantiles: int = Field(8, ge=1, le=WIDTH)
    """Quantiles sampled per return in an update, also for the actor's loss."""
    target_quantiles: int = Field(8, ge=1, le=WIDTH)
    """Quantiles sampled per target in an update."""
    kappa: float = Field(1.0, gt=0, le=REAL)
    """Error above which the value loss is linear (quantile Huber loss)."""


class SACConfig(OffPolicyConfig):
    """Soft actor-critic with a tuned temperature."""

    fixed: ClassVar[tuple[str, ...]] = (*OffPolicyConfig.fixed, "initial_temperature")

    epsilon: float = Field(0.0, ge=0, le=1)
    """Fraction of decisions that are random during collection, beside the exploration of the actor."""
    dueling: bool = False
    """Whether the critics have separate value and advantage streams; for discrete actions."""
    initial_temperature: float = Field(0.1, gt=0, le=REAL)
    """Initial weight of the entropy."""
    target_entropy: Real | None = None
    """Target entropy of an action, which the temperature is tuned for; none for minus its number of
    dimensions, or for 0.3 of the entropy of a uniform choice if actions are discrete."""


class DQNSelfPlayConfig(SelfPlaySettings, DQNConfig):
    """Deep Q-learning of games of two players, by self-play."""

    fixed: ClassVar[tuple[str, ...]] = (*DQNConfig.fixed, *SelfPlaySettings.self_play_fixed)


class RainbowSelfPlayConfig(SelfPlaySettings, RainbowConfig):
    """Rainbow for games of two players, by self-play."""

    fixed: ClassVar[tuple[str, ...]] = (*RainbowConfig.fixed, *SelfPlaySettings.self_play_fixed)

    v_min: Real = -1.0
    """Lowest return of the categorical distribution."""
    v_max: Real = 1.0
    """Highest return of the categorical distribution."""


class IQNSelfPlayConfig(SelfPlaySettings, IQNConfig):
    """Implicit quantile networks for games of two players, by self-play."""

    fixed: ClassVar[tuple[str, ...]] = (*IQNConfig.fixed, *SelfPlaySettings.self_play_fixed)


class SACSelfPlayConfig(SelfPlaySettings, SACConfig):
    """Soft actor-critic for games of two players, by self-play."""

    fixed: ClassVar[tuple[str, ...]] = (*SACConfig.fixed, *SelfPlaySettings.self_play_fixed)
