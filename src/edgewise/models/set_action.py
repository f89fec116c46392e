"""How every actor takes an action from its distribution."""

from __future__ import annotations

from tensordict import TensorDictBase
from tensordict.nn import InteractionType
from tensordict.nn.probabilistic import interaction_type
from torch.distributions import Distribution

_DETERMINISTIC = (InteractionType.DETERMINISTIC, InteractionType.MODE, InteractionType.MEAN)


def set_action(dist: Distribution, tensordict: TensorDictBase) -> TensorDictBase:
    """Write a sampled action, or the mode if exploration is off, and its log-probability."""
    action = dist.mode.detach() if interaction_type() in _DETERMINISTIC else dist.sample()
    tensordict.set("action", action)
    return tensordict.set("action_log_prob", dist.log_prob(action))
