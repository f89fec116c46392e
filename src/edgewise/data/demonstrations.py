"""Showing how it is done: rollouts of an expert, or of a learner who is helped by one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import nn
from torchrl.envs import EnvBase

from edgewise.data.rollout import Rollout
from edgewise.graphs.policy import Policy


class Mixture(nn.Module):
    """In every step each world is led by the expert with some probability, else by the learner.

    This is how DAgger collects (Ross, Gordon and Bagnell, https://arxiv.org/abs/1011.0686): a share of 1
    gives the expert's demonstrations, a share of 0 the states that the learner brings about. It draws from
    torch's own generator, which checkpoints keep.

    Args:
        expert: sets `action`.
        learner: sets `action`.
        expert_share: called in every step; what it returns may change on the way.

    Example:
        >>> Rollout(env, Mixture(MaxWeight(env), actor, expert_share=lambda: 0.5), steps=32, keep_state=True)
    """

    def __init__(self, expert: Policy, learner: Policy, *, expert_share: Callable[[], float]) -> None:
        super().__init__()
        self.expert, self.learner, self.expert_share = expert, learner, expert_share

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`, and nothing else, in every world."""
        share = self.expert_share()
        if share >= 1:
            return tensordict.set("action", _action(self.expert, tensordict))
        action = _action(self.learner, tensordict)
        if share > 0:
            led = torch.rand(tensordict.batch_size, device=action.device) < share
            led = led.reshape(*led.shape, *[1] * (action.ndim - led.ndim))
            action = torch.where(led, _action(self.expert, tensordict), action)
        return tensordict.set("action", action)


def demonstrate(env: EnvBase, expert: Policy, *, steps: int) -> TensorDictBase:
    """What an expert does in new worlds of `env`, `[B, steps]`, each step with the simulator's `state`."""
    return Rollout(env, expert, rollout_length=steps, keep_state=True).collect()


def _action(policy: Policy, tensordict: TensorDictBase) -> torch.Tensor:
    """What a policy would do; `tensordict` stays as it is."""
    return policy(tensordict.copy()).get("action")
