"""Policies that need no learning: how well anyone should do, and how well anyone can."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict

from edgewise.graphs.policy import Policy
from edgewise.systems.graphwalk import dynamics
from edgewise.systems.graphwalk.env import GraphwalkEnv


def random_walk(env: GraphwalkEnv) -> Policy:
    """Any neighbour, all alike."""
    return env.rand_action


def shortest_path(env: GraphwalkEnv) -> Policy:
    """A neighbour nearest to the goal: optimal, for its return is minus the distance from start to goal."""
    num_nodes = env.graph.num_nodes

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
        distance = dynamics.distances(state["goal"], num_nodes=num_nodes, **edges)
        beyond = torch.where(tensordict["action_mask"], distance, num_nodes + 1)
        return tensordict.set("action", beyond.argmin(-1))

    return policy


BASELINES: Mapping[str, Callable[[GraphwalkEnv], Policy]] = {
    "random": random_walk,
    "shortest_path": shortest_path,
}
