"""What all actors share: how an action is taken, and how they act in another environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensordict import TensorDictBase
from tensordict.nn import InteractionType
from tensordict.nn.probabilistic import interaction_type
from torch.distributions import Distribution

from edgewise.graphs.spec import GraphSpec
from edgewise.models.encoders.encoder import GraphEncoder

_DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


def set_action(dist: Distribution, tensordict: TensorDictBase) -> TensorDictBase:
    """Write a sampled action, or the mode if exploration is off, and its log-probability."""
    action = dist.mode.detach() if interaction_type() in _DETERMINISTIC else dist.sample()
    tensordict.set("action", action)
    return tensordict.set("action_log_prob", dist.log_prob(action))


class OtherGraphs:
    """Base of actors that can act on other graphs than their own: of another topology or edge rule."""

    encoder: GraphEncoder

    def set_graph(self, graph: GraphSpec) -> None:
        """Use another topology or edge rule from now on; features and node types must be the same."""
        raise NotImplementedError

    @contextmanager
    def on(self, env: Any) -> Iterator[None]:
        """Use the topology or edge rule of another environment within this context."""
        own = self.encoder.graph
        self.set_graph(env.graph)
        try:
            yield
        finally:
            self.set_graph(own)
