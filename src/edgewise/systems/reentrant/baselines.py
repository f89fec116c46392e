"""Baseline policies: the index rules as choices at every event, and potentials that are rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict

from edgewise.envs.policy import Policy
from edgewise.systems.reentrant.dynamics import queue_to_serve
from edgewise.systems.reentrant.env import ReentrantEnv, ReentrantPotentialsEnv
from edgewise.systems.reentrant.rules import RULES, action_of


def index_policy(name: str, env: ReentrantEnv) -> Policy:
    """Return the policy of an index rule."""
    rule, tables = RULES[name], env.tables

    def policy(tensordict: TensorDict) -> TensorDict:
        jobs, network = tensordict["state", "jobs"], tensordict["state", "network"]
        chain = tables.chain(network)
        serving, works = queue_to_serve(rule(tables, jobs, network), jobs, chain)
        place = (chain.queue_of == serving.unsqueeze(-1)).int().argmax(-1)
        return tensordict.set("action", torch.where(works, place + 1, 0))

    return policy


def _index_factory(name: str) -> Callable[[ReentrantEnv], Policy]:
    return lambda env: index_policy(name, env)


BASELINES: Mapping[str, Callable[[ReentrantEnv], Policy]] = {name: _index_factory(name) for name in RULES}


def potential_policy(name: str, env: ReentrantPotentialsEnv) -> Policy:
    """Return the policy that gives queues the potentials of an index rule."""
    actions, tables = action_of(name, env.tables), env.tables

    def policy(tensordict: TensorDict) -> TensorDict:
        action = tables.of(actions, tensordict["state", "network"])
        return tensordict.set("action", action.flatten(1))

    return policy


def _potential_factory(name: str) -> Callable[[ReentrantPotentialsEnv], Policy]:
    return lambda env: potential_policy(name, env)


POTENTIAL_BASELINES: Mapping[str, Callable[[ReentrantPotentialsEnv], Policy]] = {
    name: _potential_factory(name) for name in RULES
}
