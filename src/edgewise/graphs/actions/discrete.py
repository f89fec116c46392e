"""Actions that are made of choices: spec, sampling and legality follow from the legal choices."""

from __future__ import annotations

from abc import abstractmethod

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data import Categorical, TensorSpec

from edgewise.config.errors import NoLegalActionError
from edgewise.graphs.actions.layout import ActionLayout, Choices, check_action
from edgewise.graphs.spec import GraphSpec


class DiscreteLayout(ActionLayout):
    """Every decider of a world takes one of K choices: action `[*B, *D]` int64, mask `[*B, *D, K]`.

    A layout defines `mask_shape`, `(*D, K)`, and `choices`. Without D, the world is the only decider.
    """

    @abstractmethod
    def choices(self, observation: TensorDictBase, graph: GraphSpec) -> Choices:
        """Return the legal choices of every decider; those that are not counted may take any choice."""

    def spec(self, graph: GraphSpec, *, num_envs: int, num_edges: int, device: torch.device) -> TensorSpec:
        """Return the spec of one choice per decider, `[B, *D]`."""
        *deciders, count = self.mask_shape(graph, num_edges=num_edges)
        return Categorical(count, shape=(num_envs, *deciders), dtype=torch.int64, device=device)

    def sample(
        self, observation: TensorDictBase, graph: GraphSpec, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sample a legal choice for every decider, including those that are not counted."""
        self._check_mask(observation)
        return sample_allowed(self.choices(observation, graph).legal, generator)

    def is_legal(self, action: Tensor, observation: TensorDictBase, graph: GraphSpec) -> Tensor:
        """Return which worlds have every choice in range and those of counted deciders legal."""
        self._check_mask(observation)
        found = self.choices(observation, graph)
        legal = found.legal if found.counted is None else found.legal | ~found.counted.unsqueeze(-1)
        allowed, batch = is_allowed(action, legal), len(observation.batch_size)
        return allowed.flatten(batch).all(-1) if allowed.dim() > batch else allowed

    def _check_mask(self, observation: TensorDictBase) -> None:
        if self.needs_mask:
            self.required_mask(observation)


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
        message = f"action_mask{list(where)} allows nothing: world {where[0]} has no legal action"
        raise NoLegalActionError(message, world=where[0])


def is_allowed(choice: Tensor, mask: Tensor) -> Tensor:
    """Return which choices are in range and allowed: `[...]` int64 and `[..., K]` bool to `[...]` bool."""
    check_action(choice, shape=tuple(mask.shape[:-1]), dtype=torch.int64)
    in_range = (choice >= 0) & (choice < mask.shape[-1])
    place = choice.clamp(0, mask.shape[-1] - 1).unsqueeze(-1)
    return in_range & mask.gather(-1, place).squeeze(-1)
