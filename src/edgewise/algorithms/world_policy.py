"""Policy of deciders that share an observation: one forward pass for all worlds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase

from edgewise.algorithms.ego_policy import idle_action
from edgewise.models.graph_features import GraphFeatures
from edgewise.models.policy_function import PolicyFunction


class WorldPolicy(TensorDictModuleBase):
    """The policy of an off-policy algorithm on whole observations: sets `action` in every world.

    Deciders that do not act get the idle action.

    Args:
        learner: the algorithm, whose `explore` maps observations to actions.
    """

    def __init__(self, learner: Any) -> None:
        super().__init__()
        self.networks, self._learner = learner.networks, learner
        self.idle = idle_action(learner.deciders.actions)
        self.in_keys, self.out_keys = list(learner.deciders.stored), ["action"]

    @torch.no_grad()
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        action = self._learner.explore(tensordict)
        counted = self._learner.deciders.counted(tensordict)
        if counted is not None:
            mask = counted.reshape(*counted.shape, *[1] * (action.ndim - counted.ndim))
            action = torch.where(mask, action, self.idle)
        return tensordict.set("action", action)

    def as_function(self, env: Any) -> PolicyFunction:
        """Return the policy as a function of named tensors, for export."""
        from edgewise.algorithms.policy_functions import WorldFunction

        return WorldFunction(self._learner, env, idle=self.idle)

    @contextmanager
    def on(self, env: Any) -> Iterator[None]:
        """Use the topology or edge rule of another environment within this context."""
        deciders, graph = self._learner.deciders, self._learner.deciders.graph
        readers = [module for module in self.networks.modules() if isinstance(module, GraphFeatures)]
        for each in (deciders, *readers):
            each.graph = env.graph
        try:
            yield
        finally:
            for each in (deciders, *readers):
                each.graph = graph

    def __deepcopy__(self, memo: dict[int, Any]) -> WorldPolicy:
        """Return a policy with a copy of the networks, and nothing else of the algorithm."""
        learner = copy.copy(self._learner)
        learner.networks = copy.deepcopy(self.networks, memo)
        return type(self)(learner).train(self.training)
