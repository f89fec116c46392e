"""Collect with an expert, or with a mixture of an expert and a learner."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import nn

from edgewise.envs.policy import Policy, encode_once, graph_of_worlds
from edgewise.graphs.keys import GRAPH


class ExpertMixture(nn.Module):
    """The behaviour policy of DAgger: in each step and world the expert acts with some probability.

    A share of 1 gives demonstrations of the expert, a share of 0 rollouts of the learner (Ross, Gordon and
    Bagnell, https://arxiv.org/abs/1011.0686). It samples from torch's global generator, which checkpoints
    save.

    Args:
        expert: sets `action`.
        learner: sets `action`.
        expert_share: called in every step; its result may change over time.

    Example:
        >>> mixture = ExpertMixture(expert, actor, expert_share=lambda: 0.5)
        >>> batch = Rollout(env, mixture, rollout_length=32, keep_state=True).collect()
    """

    def __init__(self, expert: Policy, learner: Policy, *, expert_share: Callable[[], float]) -> None:
        super().__init__()
        self.expert, self.learner, self.expert_share = expert, learner, expert_share

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action` in every world, and no other entry."""
        share = self.expert_share()
        if share >= 1:
            return tensordict.set("action", _action(self.expert, tensordict))
        action = _action(self.learner, tensordict)
        if share > 0:
            by_expert = torch.rand(tensordict.batch_size, device=action.device) < share
            by_expert = by_expert.reshape(*by_expert.shape, *[1] * (action.ndim - by_expert.ndim))
            action = torch.where(by_expert, _action(self.expert, tensordict), action)
        return tensordict.set("action", action)

    def on_instances(self, roots: TensorDictBase) -> Policy:
        """Return the mixture for the worlds that start at `roots [I]`, which the learner encodes once."""
        learner, _ = encode_once(self.learner, roots)
        if learner is self.learner:
            return self
        mixture = ExpertMixture(self.expert, learner, expert_share=self.expert_share)
        graph = roots.get(GRAPH)

        def policy(tensordict: TensorDictBase) -> TensorDictBase:
            acted = mixture(tensordict.copy().set(GRAPH, graph_of_worlds(graph, len(tensordict))))
            return tensordict.set("action", acted.get("action"))

        return policy


def _action(policy: Policy, tensordict: TensorDictBase) -> torch.Tensor:
    """Return the action of a policy without changing `tensordict`."""
    return policy(tensordict.copy()).get("action")
