"""Baseline policies: the routing rules as choices of one class per link."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict

from edgewise.envs.policy import Policy
from edgewise.systems.multihop.env import MultihopEnv
from edgewise.systems.multihop.lengths import MultihopLengthsEnv, lengths_of_rule
from edgewise.systems.multihop.networks.batch import Networks
from edgewise.systems.multihop.routers import ROUTERS, Router


def as_policy(router: Router) -> Policy:
    """Turn a router into a policy: each link chooses the class that it requests, or none.

    The environment serves links in random order. If several links of a node request more of a class than is
    queued, the order decides which of them gets less; `simulate.baseline_run` keeps the router's own order.
    """

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        request = router.requests(state["queues"], state["capacity"], state["network"])
        amount, kind = request.max(-1)
        choice = torch.where(amount > 0, kind + 1, 0)
        allowed = tensordict["action_mask"].gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        first = tensordict["action_mask"].int().argmax(-1)
        return tensordict.set("action", torch.where(allowed, choice, first))

    return policy


def _factory(name: str) -> Callable[[MultihopEnv], Policy]:
    return lambda env: as_policy(ROUTERS[name](env.networks))


BASELINES: Mapping[str, Callable[[MultihopEnv], Policy]] = {name: _factory(name) for name in ROUTERS}


def lengths_as_policy(rule: str, env: MultihopLengthsEnv) -> Policy:
    """Return the policy that gives links the lengths of a rule."""
    lengths = lengths_of_rule(env.networks, env.instances, rule)

    def policy(tensordict: TensorDict) -> TensorDict:
        return tensordict.set("action", Networks.of(lengths, tensordict["state", "network"]))

    return policy


def _lengths_factory(rule: str) -> Callable[[MultihopLengthsEnv], Policy]:
    return lambda env: lengths_as_policy(rule, env)


LENGTH_BASELINES: Mapping[str, Callable[[MultihopLengthsEnv], Policy]] = {
    name: _lengths_factory(name) for name in ("length-backpressure", "flow-backpressure")
}
