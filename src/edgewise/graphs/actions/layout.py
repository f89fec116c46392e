"""The base of every action layout: how an environment's graphs are acted on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import TensorSpec

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
    actions and tests whether actions are legal. A policy for the layout needs a head, which
    `edgewise.models.build.register_head` declares. A new layout is a frozen dataclass in a file of its own.

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

    def default_mask(self, graph: TensorDictBase) -> Tensor | None:  # noqa: ARG002
        """Return the mask of all choices that exist in `graph`, or None if the layout does not define one.

        It is the mask of an environment that does not give its own. No mask may allow more.
        """
        return None

    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices | None:  # noqa: ARG002
        """Return the legal choices of every decider, or None if an action is not made of such choices.

        Action values can be learnt for a layout with choices: each decider takes its best one.

        Args:
            observation: batch size `[*B]`, with `graph` and whatever else the layout reads.
            graph: shape of the graphs.
        """
        return None

    def has_legal_action(self, mask: Tensor) -> Tensor:
        """Return which worlds have at least one legal action under `mask [B, ...]`, `[B]` bool."""
        return mask.any(-1).reshape(len(mask), -1).all(-1)

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


def sample_allowed(mask: Tensor, generator: torch.Generator | None) -> Tensor:
    """Sample one true entry of each row, `[..., K]` bool to `[...]` int64.

    Raises:
        ValueError: a row has no true entry; checked on a CPU and outside of compiled code.
    """
    if mask.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_not_empty(mask)
    priority = torch.rand(mask.shape, device=mask.device, generator=generator)
    return priority.masked_fill(~mask, -1.0).argmax(-1)


def _check_not_empty(mask: Tensor) -> None:
    empty = ~mask.any(-1)
    if empty.any():
        where = tuple(empty.nonzero()[0].tolist())
        raise ValueError(f"action_mask{list(where)} allows nothing: world {where[0]} has no legal action")


def is_allowed(choice: Tensor, mask: Tensor) -> Tensor:
    """Return which choices are in range and allowed: `[...]` int64 and `[..., K]` bool to `[...]` bool."""
    check_action(choice, shape=tuple(mask.shape[:-1]), dtype=torch.int64)
    in_range = (choice >= 0) & (choice < mask.shape[-1])
    place = choice.clamp(0, mask.shape[-1] - 1).unsqueeze(-1)
    return in_range & mask.gather(-1, place).squeeze(-1)


def check_action(action: Tensor, *, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise ValueError if an action has another shape or another dtype."""
    if tuple(action.shape) != shape or action.dtype != dtype:
        raise ValueError(f"the action must be {list(shape)} {dtype}, got {list(action.shape)} {action.dtype}")
