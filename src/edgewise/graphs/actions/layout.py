"""The base of every action layout: how an environment's graphs are acted on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.nn.functional import one_hot
from torchrl.data import TensorSpec

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions.marks import ActionMarks, listed
from edgewise.graphs.keys import MASK
from edgewise.graphs.spec import GraphSpec


@dataclass(frozen=True)
class Choices:
    """A discrete action as one choice of each decider: of the world, an agent, an edge or a group of edges.

    Attributes:
        legal: `[*D, K]` bool, the legal choices of each decider; D are the dimensions of an action.
        counted: `[*D]` bool, the deciders that exist and act; None if all do.
    """

    legal: Tensor
    counted: Tensor | None = None


class ActionLayout(ABC):
    """How the graphs of an environment are acted on: the shape, the mask and the legality of an action.

    An environment sets `self.actions` to a layout. The layout builds the action spec, samples random legal
    actions and tests whether actions are legal. A new layout is a frozen dataclass in a file of its own. If
    its actions are made of choices, derive it from `DiscreteLayout`, which needs two methods.

    A layout names the class of its policy head as a class attribute, `head = MyHead`, and if values of its
    choices can be learned, that of its features, `features = MyFeatures`; derived layouts inherit both.

    Attributes:
        num_agents: number of agents that act, A; zero if the layout has no agents.
        needs_mask: whether every observation must have `action_mask`.
        mask_dims: what the dimensions of `action_mask` count, without its batch dimensions: `nodes`, `edges`,
            `agents`, `groups` or `choices`, and None for a size that is the same in all graphs. The attribute
            is None if all sizes are.
    """

    num_agents: int = 0
    needs_mask: bool = False
    mask_dims: tuple[str | None, ...] | None = None

    @property
    def head(self) -> type | str:
        """Class of the policy head, a subclass of `Head`, or its address.

        Raises:
            ConfigError: the layout has none.
        """
        name = type(self).__name__
        raise ConfigError(f"{name} has no policy head", hint=f"set `{name}.head` to a subclass of ew.Head")

    @property
    def features(self) -> type | str:
        """Class of the features of its choices, a subclass of `GraphFeatures`, or its address.

        Raises:
            ConfigError: the layout has none, so that action values cannot be learned for it.
        """
        name = type(self).__name__
        raise ConfigError(
            f"{name} has no action values: it names no features",
            hint=f"set `{name}.features` to a subclass of GraphFeatures, or use ppo",
        )

    @abstractmethod
    def spec(self, graph: GraphSpec, *, num_envs: int, num_edges: int, device: torch.device) -> TensorSpec:
        """Return the TorchRL spec of the actions of `num_envs` worlds.

        Args:
            graph: shape of the graphs.
            num_envs: batch size B.
            num_edges: number of edge slots E.
            device: of the actions.
        """

    @abstractmethod
    def mask_shape(self, graph: GraphSpec, *, num_edges: int) -> tuple[int, ...]:
        """Return the shape of `action_mask` without its batch dimensions.

        Args:
            graph: shape of the graphs.
            num_edges: number of edge slots E.
        """

    @abstractmethod
    def sample(
        self, observation: TensorDictBase, graph: GraphSpec, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sample a legal action for every world, uniformly unless the layout documents another distribution.

        Args:
            observation: batch size `[*B]`, with `graph` and whatever else the layout reads.
            graph: shape of the graphs.
            generator: source of randomness on the observation's device; None for torch's default generator.

        Raises:
            ValueError: the mask is missing where the layout needs one, or a world has no legal action.
        """

    @abstractmethod
    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have a legal action, `[*B]` bool.

        Args:
            action: one action per world, shaped as in `spec`.
            observation: batch size `[*B]`, with `graph` and whatever else the layout reads.
            graph: shape of the graphs.

        Raises:
            ValueError: the action has the wrong shape or dtype, or a mask that the layout needs is missing.
        """

    def unpack(self, action: Tensor, graph: GraphSpec) -> Any:  # noqa: ARG002
        """Return an action as `advance` of an environment gets it; by default as it is."""
        return action

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices | None:  # noqa: ARG002
        """Return the legal choices of every decider, or None if an action is not made of such choices.

        Args:
            observation: batch size `[*B]`, with `graph` and whatever else the layout reads.
            graph: shape of the graphs.
        """
        return None

    def as_prior(
        self, action: Tensor, observation: TensorDictBase, graph: GraphSpec
    ) -> Tensor | TensorDictBase:
        """Return an action as `action_prior`: a score of one for each choice, or numbers as they are.

        Args:
            action: `[*B, ...]`, as in `spec`.
            observation: batch size `[*B]`, with `graph` and whatever else the layout reads.
            graph: shape of the graphs.
        """
        found = self.choices(observation, graph)
        if found is None:
            return action
        return one_hot(action, found.legal.shape[-1]).float()

    def is_same_with_fewer_slots(self, graph: GraphSpec) -> bool:  # noqa: ARG002
        """Return whether actions mean the same, in the same shape, if empty slots at the end are cut off."""
        return False

    def default_mask(self, graph: TensorDictBase) -> Tensor | None:  # noqa: ARG002
        """Return the mask of all choices that exist in `graph`, or None if the layout does not define one.

        It is the mask of an environment that does not give its own. No mask may allow more.
        """
        return None

    def has_legal_action(self, mask: Tensor) -> Tensor:
        """Return which worlds have at least one legal action under `mask [B, ...]`, `[B]` bool."""
        return mask.any(-1).reshape(len(mask), -1).all(-1)

    def legal_nodes(self, observation: TensorDictBase) -> Tensor | None:  # noqa: ARG002
        """Return which nodes may be chosen, `[*B, N]` bool, for pictures; None if nodes are not chosen."""
        return None

    def marks(self, action: Tensor, observation: TensorDictBase) -> ActionMarks:  # noqa: ARG002
        """Return how an action is marked in a picture; by default, its numbers in the caption.

        Args:
            action: of one world, without a batch dimension.
            observation: of that world, batch size `[]`.
        """
        return ActionMarks(f"action {listed([f'{number:g}' for number in action.reshape(-1).tolist()])}")

    def required_mask(self, observation: TensorDictBase) -> Tensor:
        """Return `action_mask` of an observation.

        Raises:
            ValueError: the observation has no mask.
        """
        mask: Tensor | None = observation.get(MASK, None)
        if mask is None:
            raise ValueError(
                f"{type(self).__name__} needs `action_mask` beside `graph`, and the observation has none"
            )
        return mask


def check_action(action: Tensor, *, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise ValueError if an action has another shape or another dtype."""
    if tuple(action.shape) != shape or action.dtype != dtype:
        raise ValueError(f"the action must be {list(shape)} {dtype}, got {list(action.shape)} {action.dtype}")
