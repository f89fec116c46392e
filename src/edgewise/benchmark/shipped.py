"""Methods that come with the benchmark: what `--method NAME` and `--method NAME/ENCODER` mean.

Settings are those of our recipes where there is one, and were not tuned on the test instances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, Any]

ENCODERS: Mapping[str, Settings] = {
    "transformer": {"kind": "transformer"},
    "gatv2": {"kind": "gnn", "conv": "GATv2Conv"},
    "mlp": {"kind": "mlp"},
}

GRAPHS = ("vertex-cover", "independent-set", "coloring", "immunisation")
PLANE = ("tsp", "cvrptw")
CONSTRUCTION = (*GRAPHS, *PLANE, "job-shop")


def _falling(start: float, end: float = 0.0) -> Settings:
    return {"learning_rate": {"kind": "linear", "start": start, "end": end}}


EPISODES: Settings = {
    "model": {"encoder": {"hidden": 64, "layers": 3, "feed_forward": 2}},
    "training": {"num_envs": 512, "rollout_length": 1, "schedules": _falling(1e-3)},
}
"""Whole episodes of construction problems."""
TOURS: Settings = {
    "model": {"encoder": {"hidden": 64, "layers": 2, "feed_forward": 4, "norm": "instance"}},
    "algorithm": {"starts": 10, "first_actions": "different", "minibatch_size": 16_384},
    "training": {"num_envs": 640, "rollout_length": 1, "schedules": _falling(1e-3)},
}
COVERS: Settings = {**EPISODES, "algorithm": {"starts": 8, "minibatch_size": 16_384}}
LABELS: Settings = {
    **EPISODES,
    "algorithm": {"credit": "best", "baseline": "mean", "starts": 32, "minibatch_size": 16_384},
    "training": {"num_envs": 256, "rollout_length": 1, "schedules": _falling(2e-3)},
}
CUTS: Settings = {
    "model": {"encoder": {"hidden": 32, "layers": 2}},
    "algorithm": {"gamma": 0.95, "lmbda": 0.9, "minibatch_size": 2_048, "normalise_value": True},
    "training": {"num_envs": 32, "rollout_length": 1, "schedules": _falling(1e-3)},
}
SETS: Settings = {
    "model": {"encoder": {"hidden": 32, "layers": 3}},
    "algorithm": {
        "gamma": 0.99,
        "lmbda": 0.9,
        "epochs": 1,
        "minibatch_size": 1_024,
        "entropy_coefficient": 0.01,
        "normalise_value": True,
    },
    "training": {"num_envs": 128, "rollout_length": 32, "schedules": _falling(2e-3, 1e-4)},
}
POTENTIALS: Settings = {
    "model": {
        "encoder": {"hidden": 16, "layers": 2, "heads": 2},
        "head_hidden": [16],
        "policy_gain": 0.001,
    },
    "algorithm": {"pairs": 32, "sigma": 0.02},
    "training": {"num_envs": 256, "rollout_length": 1, "schedules": _falling(1e-2, 1e-3)},
}
TEAMS: Settings = {
    "model": {
        "encoder": {"hidden": 32, "layers": 2, "heads": 4},
        "critic": "node",
        "shared_trunk": True,
    },
    "algorithm": {
        "minibatch_size": 1_600,
        "max_grad_norm": 10.0,
        "normalise_value": True,
        "huber_delta": 10.0,
    },
    "training": {"num_envs": 256, "rollout_length": 25, "schedules": _falling(1.5e-3, 3e-4)},
}
PPO_EPISODES: Settings = {
    **EPISODES,
    "algorithm": {"gamma": 1.0, "minibatch_size": 2_048, "normalise_value": True},
    "training": {"num_envs": 64, "rollout_length": 1, "schedules": _falling(1e-3)},
}
DQN: Settings = {
    "model": {"encoder": {"hidden": 64, "layers": 3}},
    "algorithm": {"gamma": 1.0, "replay_size": 50_000, "learning_starts": 1_024, "minibatch_size": 64},
    "training": {"num_envs": 64, "rollout_length": 8},
}

PPO_TASKS = {
    "max-cut": CUTS,
    "queueing-one-hop": SETS,
    "many-agents": TEAMS,
    **dict.fromkeys(CONSTRUCTION, PPO_EPISODES),
}

SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "edgewise": {
        "algorithm": {
            **dict.fromkeys(CONSTRUCTION, "reinforce"),
            **dict.fromkeys(("max-cut", "queueing-one-hop", "many-agents"), "ppo"),
            "queueing-reentrant": "evolution",
        },
        "by_task": {
            **dict.fromkeys(GRAPHS, COVERS),
            **dict.fromkeys(PLANE, TOURS),
            "job-shop": LABELS,
            "max-cut": CUTS,
            "queueing-one-hop": SETS,
            "queueing-reentrant": POTENTIALS,
            "many-agents": TEAMS,
        },
    },
    "ppo": {"algorithm": "ppo", "by_task": PPO_TASKS, "tasks": tuple(PPO_TASKS)},
    "reinforce": {
        "algorithm": "reinforce",
        "by_task": {**dict.fromkeys((*GRAPHS, "job-shop", "max-cut"), COVERS), **dict.fromkeys(PLANE, TOURS)},
        "tasks": (*CONSTRUCTION, "max-cut"),
    },
    "self-labelling": {
        "algorithm": "reinforce",
        "by_task": dict.fromkeys((*CONSTRUCTION, "max-cut"), LABELS),
        "tasks": (*CONSTRUCTION, "max-cut"),
    },
    "dqn": {"algorithm": "dqn", "settings": DQN, "tasks": (*CONSTRUCTION, "max-cut")},
    "evolution": {
        "algorithm": "evolution",
        "settings": {"training": {"num_envs": 256, "rollout_length": 1}},
        "by_task": {"queueing-reentrant": POTENTIALS},
    },
}
"""Keywords of `Method` by name. `edgewise` takes for every task the algorithm that suits it."""
