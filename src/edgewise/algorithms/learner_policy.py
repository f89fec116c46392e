"""Policy of an off-policy algorithm: one forward pass for all deciders of all worlds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.envs.policy import graph_of_worlds
from edgewise.graphs.actions import AgentsContinuous
from edgewise.graphs.keys import ACTIVE, EGO, GRAPH
from edgewise.models.graph_features import GraphFeatures, Instances
from edgewise.models.policy_function import PolicyFunction


class LearnerPolicy(TensorDictModuleBase):
    """Sets `action` in every world. Deciders that do not act get the idle action.

    Inactive agents that decide by themselves are left out of the forward pass on a CPU; on other devices
    shapes stay fixed, so that there is no synchronisation.

    Args:
        learner: the algorithm, whose `explore` maps observations to actions, and whose `return_quantiles`
            maps them to quantiles of the return or to None.
    """

    def __init__(self, learner: Any) -> None:
        super().__init__()
        self.networks, self._learner = learner.networks, learner
        actions, per_agent = learner.deciders.actions, learner.deciders.per_agent
        self.per_agent = per_agent
        # The first choice, or the middle of the range.
        self.idle = (actions.low + actions.high) / 2 if isinstance(actions, AgentsContinuous) else 0
        self.in_keys = [EGO, ACTIVE] if per_agent else list(learner.deciders.stored)
        self.out_keys = ["action"]

    @torch.no_grad()
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        deciders, explore = self._learner.deciders, self._learner.explore
        observation = deciders.observe(tensordict)
        acts = tensordict[ACTIVE] if self.per_agent else deciders.counted(tensordict)
        if self.per_agent and acts.device.type == "cpu":
            chosen = explore(observation[acts])
            action = chosen.new_full((*acts.shape, *chosen.shape[1:]), self.idle)
            action[acts] = chosen
            return tensordict.set("action", action)
        action = explore(observation)
        if acts is not None:
            shaped = acts.reshape(*acts.shape, *[1] * (action.ndim - acts.ndim))
            action = torch.where(shaped, action, self.idle)
        return tensordict.set("action", action)

    def on_instances(self, roots: TensorDictBase) -> Any:
        """Return the policy for the worlds that start at `roots [I]`, which are encoded once if possible."""
        return LearnerOnInstances(self, roots.get(GRAPH)) if self._learner.by_instance else self

    def as_function(self, env: Any) -> PolicyFunction:
        """Return the policy as a function of named tensors, for export."""
        from edgewise.algorithms.policy_functions import EgoFunction, WorldFunction

        if self.per_agent:
            return EgoFunction(self._learner, env)
        return WorldFunction(self._learner, env, idle=self.idle)

    @torch.no_grad()
    def return_quantiles(self, observation: TensorDictBase) -> Tensor | None:
        """Return quantiles of the return of every decider, without exploration, `[*D, Q]`, or None."""
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return self._learner.return_quantiles(observation)

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

    def __deepcopy__(self, memo: dict[int, Any]) -> LearnerPolicy:
        """Return a policy with a copy of the networks, and nothing else of the algorithm."""
        learner = copy.copy(self._learner)
        learner.networks = copy.deepcopy(self.networks, memo)
        return type(self)(learner).train(self.training)


class LearnerOnInstances:
    """The policy of an off-policy algorithm for fixed instances, each in the same number of worlds.

    Args:
        policy: of the algorithm.
        graph: of the instances, `[I]`.
    """

    def __init__(self, policy: LearnerPolicy, graph: TensorDictBase) -> None:
        self._policy, self._graph = policy, graph
        readers = [module for module in policy.networks.modules() if isinstance(module, GraphFeatures)]
        self._instances = [(reader, Instances(graph)) for reader in readers]

    def __call__(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action` in worlds `[I * K]`, those of an instance next to each other."""
        for reader, instances in self._instances:
            reader.instances = instances
        try:
            graph = graph_of_worlds(self._graph, len(tensordict))
            acted = self._policy(tensordict.copy().set(GRAPH, graph))
        finally:
            for reader, _ in self._instances:
                reader.instances = None
        return tensordict.set("action", acted.get("action"))
