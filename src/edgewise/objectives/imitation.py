"""How far a policy is from an expert, as pure functions: one entry per decision."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import Distribution


def surprise(distribution: Distribution, wanted: Tensor) -> Tensor:
    """`-log p(wanted)`, the loss of behaviour cloning; of the shape of the distribution's batch.

    Args:
        distribution: the policy's, batch `[*B]`, or `[*B, A]` where agents decide one by one.
        wanted: what the expert does, `[*B, ...]`; it must be legal, or the loss is beyond all bounds.
    """
    return -distribution.log_prob(wanted)


def exact_match(distribution: Distribution, wanted: Tensor) -> Tensor:
    """One where the policy's most probable action is the expert's in every part, else zero.

    Args:
        distribution: as in `surprise`.
        wanted: as in `surprise`.

    Returns:
        Float, of the shape of the distribution's batch.
    """
    same = distribution.mode == wanted
    parts = same.ndim - len(distribution.batch_shape)
    return (same.flatten(-parts).all(-1) if parts else same).float()
