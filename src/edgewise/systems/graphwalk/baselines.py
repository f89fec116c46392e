"""Baseline policies: random actions as the lower reference, shortest paths as the optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict

from edgewise.envs.policy import Policy
from edgewise.experiments.learning_pays import References
from edgewise.systems.graphwalk import dynamics
from edgewise.systems.graphwalk.env import GraphwalkEnv


def random_walk(env: GraphwalkEnv) -> Policy:
    """Return the policy that moves to a uniformly random neighbour."""
    return env.rand_action


def shortest_path(env: GraphwalkEnv) -> Policy:
    """Return the optimal policy, which moves to a neighbour closest to the goal."""
    num_nodes = env.graph.num_nodes

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        distance = dynamics.distances(state["goal"], num_nodes=num_nodes, **edges)
        distance_after = torch.where(tensordict["action_mask"], distance, num_nodes + 1)
        return tensordict.set("action", distance_after.argmin(-1))

    return policy


BASELINES: Mapping[str, Callable[[GraphwalkEnv], Policy]] = {
    "random": random_walk,
    "shortest_path": shortest_path,
}


def references(env: GraphwalkEnv) -> References:  # noqa: ARG001 - the same for all graphs
    """Return shortest paths, which are optimal."""
    return References(("shortest_path",), "shortest_path")
