"""Evaluate states of a tree search with an actor and a critic."""

from __future__ import annotations

from collections.abc import Callable

from tensordict import TensorDictBase
from torch import Tensor
from torch.distributions import Distribution

from edgewise.graphs.keys import GRAPH
from edgewise.models.actor_critic import ActorCritic
from edgewise.models.distributions.joined import Joined
from edgewise.models.distributions.masked import MaskedCategorical
from edgewise.models.instance_actor import InstanceActorCritic
from edgewise.search.tree import Evaluator


class NetworkEvaluator:
    """Gives priors from an actor and values from a critic.

    Args:
        networks: an actor with a categorical distribution over actions, and a critic.
        denormalise: converts the critic's predictions to returns, such as `ValueNorm.denormalise`; None if
            they are returns already. In games of two players, returns are kept in [-1, 1].
    """

    def __init__(
        self,
        networks: ActorCritic | InstanceActorCritic,
        *,
        denormalise: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.networks, self.denormalise = networks, denormalise

    def __call__(self, root: TensorDictBase) -> tuple[Tensor, Tensor]:
        """Return the priors and values of states, whose graphs are encoded."""
        return self._found(root, *self.networks.evaluate(root))

    def on_instances(self, roots: TensorDictBase) -> Evaluator:
        """Return an evaluator of states that follow from `roots [I]`, the same number from each.

        Graphs of environments that describe an instance once are encoded now, and not again.
        """
        if not isinstance(self.networks, InstanceActorCritic):
            return self
        evaluate = self.networks.on_instances(roots.get(GRAPH))
        return lambda root: self._found(root, *evaluate(root))

    def _found(
        self, root: TensorDictBase, distribution: Distribution, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        assert isinstance(distribution, MaskedCategorical | Joined)
        value = (value if self.denormalise is None else self.denormalise(value)).squeeze(-1)
        is_game = root.get("player", None) is not None
        return distribution.probs, value.clamp(-1.0, 1.0) if is_game else value
