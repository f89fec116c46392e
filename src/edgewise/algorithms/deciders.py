"""Who decides, on what they observe, between which choices: an environment as value networks see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor

from edgewise.config.errors import ConfigError
from edgewise.data.transitions import TransitionMaker
from edgewise.graphs.actions import ActionLayout, AgentsContinuous, AgentsDiscrete
from edgewise.graphs.actions.discrete import sample_allowed
from edgewise.models.agents.actions import num_choices
from edgewise.models.agents.ego import EgoSpec, make_ego_encoder, nearest_gap
from edgewise.models.config import EgoConfig, ValueConfig
from edgewise.models.features import Features
from edgewise.models.mixers import Mixer

Role = Literal["actor", "critic"]
Mixing = Literal["auto", "none", "sum", "monotone"]


class Transitions(Protocol):
    """Makes the rows of a replay buffer from rollouts, and samples for updates from those rows."""

    def stored(self, batch: TensorDictBase) -> TensorDictBase:
        """Return the transitions `[M]` that are complete with a batch `[B, T]`, as they are stored."""

    def expand(self, stored: TensorDictBase) -> TensorDictBase:
        """Return stored transitions as algorithms take them."""

    def state_dict(self) -> dict[str, Any]:
        """Return the steps of incomplete transitions."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the steps of incomplete transitions."""


class Deciders(ABC):
    """Base of the views that off-policy algorithms have of an environment.

    D stands for the dimensions of an action, `[M]` or `[M, A]`.

    Args:
        actions: the action layout.
        model: config of the networks.
        mixing: how the values of a team become one; see `DQNConfig`.
    """

    def __init__(self, actions: ActionLayout, model: EgoConfig | ValueConfig, *, mixing: Mixing) -> None:
        self.actions, self.model, self.mixing = actions, model, mixing

    @abstractmethod
    def features(self, role: Role) -> Features:
        """Build the module that embeds observations for an actor or a critic."""

    @abstractmethod
    def mixer(self) -> Mixer | None:
        """Build the mixer of the team's values; None if each decider has a value of its own."""

    @abstractmethod
    def transitions(self, *, steps: int, discount: float, paths: bool = False) -> Transitions:
        """Build what makes n-step transitions; with `paths`, all steps of each are stored."""

    @abstractmethod
    def policy(self, learner: Any) -> TensorDictModuleBase:
        """Build the policy that acts by `learner.explore`."""

    @abstractmethod
    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices, `[*D, K]` bool; None if all are legal or actions are continuous."""

    @abstractmethod
    def counted(self, observation: TensorDictBase) -> Tensor | None:
        """Return the deciders that exist and act, `[*D]` bool; None if all do."""

    def nearest_gap(self, observation: TensorDictBase) -> Tensor:  # noqa: ARG002
        """Return the distance of every decider to the nearest object, `[*D]`.

        Raises:
            ConfigError: the observation has no objects.
        """
        raise ConfigError(
            "algorithm.risk: adaptive needs the distance to the nearest object, which only `agents.ego` has",
            hint="set it to mean or cvar",
        )

    @property
    def num_choices(self) -> int:
        """Choices of a decider, where all deciders have the same number.

        Raises:
            ConfigError: actions are not discrete.
        """
        return num_choices(self.actions)

    def random_like(self, action: Tensor, observation: TensorDictBase) -> Tensor:
        """Sample random legal actions in the shape of `action`."""
        legal = self.legal(observation)
        match self.actions:
            case AgentsContinuous(low=low, high=high):
                return low + (high - low) * torch.rand_like(action)
            case AgentsDiscrete(num_actions=count) if legal is None:
                return torch.randint_like(action, count)
        assert legal is not None
        return sample_allowed(legal | ~legal.any(-1, keepdim=True), None)


class EgoDeciders(Deciders):
    """Agents that decide by `agents.ego` alone: every row of the replay buffer is a step of one agent.

    Args:
        spec: sizes of an agent's observation.
        actions: the action layout of the agents.
        model: config of the networks.
    """

    def __init__(self, spec: EgoSpec, actions: ActionLayout, model: EgoConfig | ValueConfig) -> None:
        super().__init__(actions, model, mixing="none")
        self.spec = spec
        self.ego = model if isinstance(model, EgoConfig) else model.ego

    def features(self, role: Role) -> Features:  # noqa: ARG002
        """Build the encoder of `agents.ego`."""
        return make_ego_encoder(self.spec, self.ego)

    def mixer(self) -> None:
        """Return None: rows of single agents have no team."""

    def transitions(self, *, steps: int, discount: float, paths: bool = False) -> TransitionMaker:
        """Build what makes transitions of single agents.

        Raises:
            ConfigError: `paths` is set.
        """
        if paths:
            raise ConfigError(
                "algorithm.retrace: it needs the steps of whole worlds, and this model reads single agents",
                hint="use a model of ValueConfig, or leave algorithm.retrace out",
            )
        return TransitionMaker(steps=steps, discount=discount)

    def policy(self, learner: Any) -> TensorDictModuleBase:
        """Build the policy on `agents.ego`."""
        from edgewise.algorithms.ego_policy import EgoPolicy

        return EgoPolicy(learner)

    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the agents' `action_mask`, if the environment has one."""
        mask: Tensor | None = observation.get("action_mask", None)
        return mask

    def counted(self, observation: TensorDictBase) -> None:
        """Return None: every row is an active agent."""

    def nearest_gap(self, observation: TensorDictBase) -> Tensor:
        """Return the clearance between every agent and its nearest object, `[*D]`."""
        return nearest_gap(observation, radius=self.ego.radius, units=self.ego.units)
