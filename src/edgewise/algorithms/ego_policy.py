"""Policy of agents that act on their own observations: one forward pass for all agents of all worlds."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModuleBase
from torch import Tensor
from torchrl.envs import ExplorationType, set_exploration_type

from edgewise.graphs.actions import ActionLayout, AgentsContinuous
from edgewise.graphs.keys import ACTIVE, EGO, MASK
from edgewise.models.policy_function import PolicyFunction


class EgoPolicy(TensorDictModuleBase):
    """The policy of an off-policy algorithm on `agents.ego`: sets `action` of every agent of every world.

    Inactive agents get the idle action. On a CPU they are left out of the forward pass; on other devices
    shapes stay fixed, so that there is no synchronisation.

    Args:
        learner: the algorithm, whose `explore` maps observations of agents `[*B]` to actions, and whose
            `return_quantiles` maps them to quantiles of the return or to None.
    """

    def __init__(self, learner: Any) -> None:
        super().__init__()
        self.networks, self._learner = learner.networks, learner
        self.idle = idle_action(learner.deciders.actions)
        self.in_keys, self.out_keys = [EGO, ACTIVE], ["action"]

    @torch.no_grad()
    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`."""
        active, ego = tensordict[ACTIVE], tensordict[EGO].copy()
        ego.batch_size = active.shape
        mask = tensordict.get(MASK, None)
        if mask is not None:
            ego.set(MASK, mask)
        if active.device.type == "cpu":
            chosen = self._learner.explore(ego[active])
            action = chosen.new_full((*active.shape, *chosen.shape[1:]), self.idle)
            action[active] = chosen
        else:
            chosen = self._learner.explore(ego)
            acts = active.reshape(*active.shape, *[1] * (chosen.ndim - active.ndim))
            action = torch.where(acts, chosen, self.idle)
        return tensordict.set("action", action)

    def as_function(self, env: Any) -> PolicyFunction:
        """Return the policy as a function of named tensors, for export."""
        from edgewise.algorithms.policy_functions import EgoFunction

        return EgoFunction(self._learner, env)

    @torch.no_grad()
    def return_quantiles(self, ego: TensorDictBase) -> Tensor | None:
        """Return quantiles of the return of agents that observe `ego [M]`, without exploration, `[M, Q]`."""
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return self._learner.return_quantiles(ego)


def idle_action(actions: ActionLayout) -> float:
    """Return the action of a decider that does not act: the first choice, or the middle of the range."""
    return (actions.low + actions.high) / 2 if isinstance(actions, AgentsContinuous) else 0
