"""The weight of a prior as a setting of an algorithm, so that schedules can let a rule fade out."""

from __future__ import annotations

from torch import nn

from edgewise.models.heads import Head


def apply_prior_weight(actor: nn.Module, weight: float | None) -> None:
    """Set the weight of the prior of an actor, if the setting `prior_weight` is not None.

    Raises:
        ValueError: the actor has no prior.
    """
    if weight is None:
        return
    head = getattr(actor, "head", None)
    if not isinstance(head, Head):
        raise ValueError("the policy has no prior, so prior_weight has nothing to set")
    head.set_weight_of_prior(weight)
