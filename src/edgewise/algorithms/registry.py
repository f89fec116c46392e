"""Algorithms by name, found when asked for, so that naming one costs no import."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ALGORITHMS = {
    "ppo": ("edgewise.algorithms.ppo:PPO", "edgewise.algorithms.config:PPOConfig"),
    "clone": ("edgewise.algorithms.clone:Clone", "edgewise.algorithms.config:CloneConfig"),
    "dqn": ("edgewise.algorithms.dqn:DQN", "edgewise.algorithms.off_policy_config:DQNConfig"),
    "rainbow": ("edgewise.algorithms.rainbow:Rainbow", "edgewise.algorithms.off_policy_config:RainbowConfig"),
    "iqn": ("edgewise.algorithms.iqn:IQN", "edgewise.algorithms.off_policy_config:IQNConfig"),
    "ac-iqn": ("edgewise.algorithms.ac_iqn:ACIQN", "edgewise.algorithms.off_policy_config:ACIQNConfig"),
    "sac": ("edgewise.algorithms.sac:SAC", "edgewise.algorithms.off_policy_config:SACConfig"),
    "ddpg": ("edgewise.algorithms.ddpg:DDPG", "edgewise.algorithms.off_policy_config:DDPGConfig"),
}
"""Name → the class and its config, both as `module:Class`."""


def algorithm_class(name: str) -> Any:
    """The class of the algorithm called `name`."""
    return _resolve(name, 0)


def algorithm_config(name: str) -> Any:
    """The config class of the algorithm called `name`; importing it does not import torch."""
    return _resolve(name, 1)


def _resolve(name: str, part: int) -> Any:
    if name not in ALGORITHMS:
        raise ValueError(f"no algorithm is called {name!r}; there are {', '.join(sorted(ALGORITHMS))}")
    module, _, attribute = ALGORITHMS[name][part].partition(":")
    return getattr(import_module(module), attribute)
