"""Base of the modules in front of value networks and actors: features of those who decide."""

from __future__ import annotations

from abc import abstractmethod

from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.models.size_classes import SizeClass

ILLEGAL = -1e9
"""Value and logit of an illegal choice: finite, so that masked losses have finite gradients."""


class Features(nn.Module):
    """Base of modules that map an observation to features of deciders, or of each of their choices.

    A decider is whoever makes one choice: the world itself, an agent, an edge or a group of edges. D stands
    for the dimensions of an action: `[M]`, or `[M, A]` for A deciders in each of M worlds.

    Attributes:
        width: number of features.
        per_choice: whether the features are those of every choice, `[*D, K, width]`, instead of those of the
            deciders, `[*D, width]`.
    """

    width: int
    per_choice: bool = False

    @abstractmethod
    def forward(self, observation: TensorDictBase) -> Tensor:
        """Return features `[*D, width]`, or `[*D, K, width]` if `per_choice`."""

    @abstractmethod
    def legal(self, observation: TensorDictBase) -> Tensor | None:
        """Return the legal choices of every decider, `[*D, K]` bool; None if all are."""

    def classes(self, observation: TensorDictBase) -> list[SizeClass] | None:  # noqa: ARG002
        """Divide a batch by the size of its graphs; None if it should stay whole."""
        return None

    def whole(self, observation: TensorDictBase) -> TensorDictBase:
        """Return the observation with padded tensors."""
        return observation

    def num_choices(self, observation: TensorDictBase) -> int | None:  # noqa: ARG002
        """Return the number of choices of a decider in a batch that `classes` divides, if graphs set it."""
        return None


def mask_illegal(values: Tensor, legal: Tensor | None) -> Tensor:
    """Set the values or logits of illegal choices to `ILLEGAL`.

    Rows without any legal choice, such as those of terminal states, become zero.

    Args:
        values: `[*D, K]`, or `[*D, Q, K]` for quantiles.
        legal: `[*D, K]` bool; None leaves the values unchanged.
    """
    if legal is None:
        return values
    if values.dim() > legal.dim():
        legal = legal.unsqueeze(-2)
    return values.masked_fill(~legal, ILLEGAL).masked_fill(~legal.any(-1, keepdim=True), 0.0)


def legal_mean(values: Tensor, legal: Tensor | None, *, dim: int) -> Tensor:
    """Average over the legal choices along `dim`, which is kept with size 1; zero if there are none.

    Args:
        values: `[*D, K]` or `[*D, K, C]`.
        legal: `[*D, K]` bool; None if all are.
        dim: the dimension of the choices, -1 or -2.
    """
    if legal is None:
        return values.mean(dim, keepdim=True)
    mask = legal if dim == -1 else legal.unsqueeze(-1)
    return values.masked_fill(~mask, 0.0).sum(dim, keepdim=True) / mask.sum(dim, keepdim=True).clamp(min=1)
