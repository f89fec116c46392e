"""Evaluate states of a tree search with an actor and a critic."""

from __future__ import annotations

from collections.abc import Callable

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.models.actor_critic import ActorCritic
from edgewise.models.distributions.masked import MaskedCategorical
from edgewise.search.tree import Evaluator


def network_evaluator(
    networks: ActorCritic, *, denormalise: Callable[[Tensor], Tensor] | None = None
) -> Evaluator:
    """Return an evaluator with priors from the actor and values from the critic.

    Args:
        networks: an actor with a categorical distribution over actions, and a critic.
        denormalise: converts the critic's predictions to returns, such as `ValueNorm.denormalise`; None if
            they are returns already.
    """

    def evaluate(root: TensorDictBase) -> tuple[Tensor, Tensor]:
        distribution, value = networks.evaluate(root)
        assert isinstance(distribution, MaskedCategorical)
        value = value if denormalise is None else denormalise(value)
        return distribution.probs, value.squeeze(-1).clamp(-1.0, 1.0)

    return evaluate
