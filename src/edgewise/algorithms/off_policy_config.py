"""What every algorithm that learns from a replay has in common, said without torch."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from edgewise.config.model import Config


class OffPolicyConfig(Config):
    """Learning from a replay of transitions; every number that is not fixed may be scheduled by its name.

    A frame is one step of one world, a transition one step of one robot.
    """

    fixed: ClassVar[tuple[str, ...]] = ("gamma", "n_step", "minibatch_size", "replay_size", "alpha")

    gamma: float = Field(0.99, ge=0, le=1)
    """Discount of a reward one step ahead."""
    n_step: int = Field(1, ge=1, le=127)
    """Steps of a robot between a transition's two ends."""
    learning_rate: float = Field(5e-4, ge=0)
    """Step size of Adam, for every network."""
    adam_epsilon: float = Field(1e-8, gt=0)
    """Added to the root of Adam's second moment."""
    max_grad_norm: float = Field(5.0, gt=0)
    """Gradients longer than this are shortened to it, each network's apart."""
    minibatch_size: int = Field(256, ge=1)
    """Transitions in one update."""
    updates_per_transition: float = Field(1 / 32, ge=0)
    """Updates made for every transition collected; fractions are carried from batch to batch."""
    learning_starts: int = Field(2000, ge=0)
    """Frames that are collected before the first update."""
    target_interval: int = Field(1, ge=1)
    """Updates between two moves of the target networks."""
    tau: float = Field(0.01, gt=0, le=1)
    """How far the targets then move towards the networks; 1 copies them."""
    epsilon: float = Field(0.05, ge=0, le=1)
    """Share of robots that act at random while collecting."""
    replay_size: int = Field(1_000_000, ge=1)
    """Transitions that are kept."""
    replay_storage: Literal["memory", "memmap"] = "memory"
    """Whether they are kept on the device, or in a file that may be larger than memory."""
    prioritised: bool = False
    """Whether transitions with large errors are drawn more often."""
    alpha: float = Field(0.5, ge=0, le=1)
    """How much the size of an error matters then; 0 draws all alike."""
    beta: float = Field(0.4, ge=0, le=1)
    """How much weights make up for it; 1 fully. Usually rises to 1."""
    expert: str | None = None
    """A baseline of the environment that helps to collect; none for nobody."""
    expert_share: float = Field(0.0, ge=0, le=1)
    """Share of worlds and steps in which the expert leads."""
    cloning_coefficient: float = Field(0.0, ge=0)
    """Weight of a loss that draws the policy to what was done; for a replay that an expert fills."""


class DQNConfig(OffPolicyConfig):
    """Deep Q-learning whose online network chooses and whose target network values."""

    double: bool = True
    """Whether the online network chooses the action that the target network values."""
    dueling: bool = False
    """Whether the value of a state and the advantages of choices are told apart."""
    huber_delta: float = Field(1.0, gt=0)
    """Error beyond which the loss grows linearly."""


class DistributionalConfig(OffPolicyConfig):
    """What algorithms that learn whole distributions of returns share: how much risk to take."""

    risk: Literal["mean", "cvar", "adaptive"] = "mean"
    """Act by the mean of all returns, of the worst `risk_alpha`, or of fewer the nearer an object is."""
    risk_alpha: float = Field(0.5, gt=0, le=1)
    """The worst share of returns that `cvar` looks at, and the least that `adaptive` does."""
    risk_reach: float = Field(10.0, gt=0)
    """Distance from hull to hull from which on `adaptive` looks at all returns."""
    robot_radius: float = Field(2.8, ge=0)
    """Of the robot's hull, for that distance."""


class RainbowConfig(DistributionalConfig):
    """Categorical returns, noisy and dueling layers, several steps at once, prioritised replay."""

    fixed: ClassVar[tuple[str, ...]] = (*OffPolicyConfig.fixed, "atoms", "lowest", "highest", "sigma")

    n_step: int = Field(3, ge=1, le=127)
    """Steps of a robot between a transition's two ends."""
    prioritised: bool = True
    """Whether transitions with large errors are drawn more often."""
    epsilon: float = Field(0.0, ge=0, le=1)
    """Share of robots that act at random besides; the noise explores by itself."""
    atoms: int = Field(51, ge=2)
    """Returns that are told apart."""
    lowest: float = -15.0
    """The lowest of them."""
    highest: float = 60.0
    """The highest of them."""
    sigma: float = Field(0.5, ge=0)
    """Initial size of the noise."""

    @model_validator(mode="after")
    def _support_ascends(self) -> RainbowConfig:
        if self.lowest >= self.highest:
            raise ValueError(f"lowest={self.lowest} must be below highest={self.highest}")
        return self


class IQNConfig(DistributionalConfig):
    """Implicit quantile networks over choices."""

    double: bool = True
    """Whether the online network chooses the action whose quantiles the target network gives."""
    quantiles: int = Field(8, ge=1)
    """Quantiles that an update draws of each return."""
    target_quantiles: int = Field(8, ge=1)
    """Quantiles that it draws of each target."""
    acting_quantiles: int = Field(32, ge=1)
    """Quantiles whose mean decides, where nothing is explored."""
    exploring_quantiles: int = Field(8, ge=1)
    """Quantiles whose mean decides while collecting, and which action a target takes."""
    kappa: float = Field(1.0, gt=0)
    """Error beyond which the loss grows linearly."""


class ContinuousConfig(OffPolicyConfig):
    """What algorithms with a deterministic actor share."""

    action_noise: float = Field(0.1, ge=0)
    """Deviation of the normal noise on actions while collecting, as a share of half their range."""
    actor_share: float = Field(1.0, gt=0, le=1)
    """The actor's step size as a share of the critic's; below 1 the actor climbs fewer of its errors."""
    target_noise: float = Field(0.0, ge=0)
    """Deviation of noise on the actions that targets value, cut off at twice it: narrow peaks do not pay."""


class DDPGConfig(ContinuousConfig):
    """Deterministic policy gradient."""

    huber_delta: float = Field(1.0, gt=0)
    """Error beyond which the critic's loss grows linearly."""


class ACIQNConfig(ContinuousConfig, DistributionalConfig):
    """A deterministic actor led by a critic of implicit quantiles."""

    quantiles: int = Field(8, ge=1)
    """Quantiles that an update draws of each return, and that lead the actor."""
    target_quantiles: int = Field(8, ge=1)
    """Quantiles that it draws of each target."""
    kappa: float = Field(1.0, gt=0)
    """Error beyond which the critic's loss grows linearly."""


class SACConfig(OffPolicyConfig):
    """Soft actor-critic whose temperature holds the entropy at a wanted value."""

    fixed: ClassVar[tuple[str, ...]] = (*OffPolicyConfig.fixed, "initial_temperature")

    epsilon: float = Field(0.0, ge=0, le=1)
    """Share of robots that act at random besides; the actor explores by itself."""
    initial_temperature: float = Field(0.1, gt=0)
    """Weight of entropy at the start."""
    wanted_entropy: float | None = None
    """Entropy of an action that the temperature holds; none for minus the number of its dimensions."""
