"""Let an expert take over in worlds with a high load, so that any learner stays stable."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.envs.policy import Policy

INTERVENED = "intervened"


class Intervention(nn.Module):
    """A policy in which the expert acts in worlds above a load threshold, and the learner in all others.

    With a stable expert, such as MaxWeight for queues, the combination is stable whatever the learner does
    below the threshold (https://arxiv.org/abs/2404.04106). It also sets `intervened [*B]` bool. There
    `action_log_prob` is zero and has no meaning, since the learner did not sample the action; PPO masks such
    steps out of the policy loss.

    Args:
        learner: sets `action` and, while learning, `action_log_prob`.
        expert: sets `action`.
        load: maps the root TensorDict to the load of each world, `[*B]`.
        above: the threshold of the load.

    Example:
        >>> Intervention(actor, expert, load=lambda root: env.load(root["state"]), above=50.0)
    """

    def __init__(
        self, learner: Policy, expert: Policy, *, load: Callable[[TensorDictBase], Tensor], above: float
    ) -> None:
        super().__init__()
        self.learner, self.expert, self.load, self.above = learner, expert, load, above

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Set `action`, `action_log_prob` and `intervened` in every world."""
        tensordict = self.learner(tensordict)
        loaded = self.load(tensordict) > self.above
        action = self.expert(tensordict.copy()).get("action")
        tensordict.set("action", torch.where(_expand(loaded, action), action, tensordict.get("action")))
        log_prob = tensordict.get("action_log_prob", None)
        if log_prob is not None:
            tensordict.set("action_log_prob", log_prob.masked_fill(_expand(loaded, log_prob), 0.0))
        return tensordict.set(INTERVENED, loaded)


def _expand(mask: Tensor, like: Tensor) -> Tensor:
    """Reshape a mask of worlds `[*B]` to broadcast against `like [*B, ...]`."""
    return mask.reshape(*mask.shape, *[1] * (like.ndim - mask.ndim))
