"""A learner that hands over when things get out of hand, so that even a bad one keeps its worlds stable."""

from __future__ import annotations

from collections.abc import Callable

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.graphs.policy import Policy

INTERVENED = "intervened"


class Intervention(nn.Module):
    """The expert acts in loaded worlds, the learner in all others.

    With an expert that is stable wherever stability is possible, such as MaxWeight for queues, the mixture is
    stable too, whatever the learner does below the threshold (https://arxiv.org/abs/2404.04106). Besides
    `action`, sets `intervened [*B]` bool. There `action_log_prob` is zero, which nobody should read: the
    action was not drawn from the learner, and PPO leaves such steps out of the policy's loss.

    Args:
        learner: sets `action` and, while it learns, `action_log_prob`.
        expert: sets `action`.
        load: from the root TensorDict to a number for each world, `[*B]`.
        above: the load above which the expert acts.

    Example:
        >>> Intervention(actor, MaxWeight(env), load=lambda root: env.load(root["state"]), above=50.0)
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
        helped = self.expert(tensordict.copy()).get("action")
        tensordict.set("action", torch.where(_along(loaded, helped), helped, tensordict.get("action")))
        score = tensordict.get("action_log_prob", None)
        if score is not None:
            tensordict.set("action_log_prob", score.masked_fill(_along(loaded, score), 0.0))
        return tensordict.set(INTERVENED, loaded)


def _along(mark: Tensor, like: Tensor) -> Tensor:
    """A mark of worlds `[*B]`, to broadcast against `like [*B, ...]`."""
    return mark.reshape(*mark.shape, *[1] * (like.ndim - mark.ndim))
