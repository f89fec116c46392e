"""Algorithms by name, found when asked for, so that naming one costs no import."""

from __future__ import annotations

from importlib import import_module
from typing import Any

ALGORITHMS = {
    "ppo": ("edgewise.algorithms.ppo:PPO", "edgewise.algorithms.config:PPOConfig"),
    "clone": ("edgewise.algorithms.clone:Clone", "edgewise.algorithms.config:CloneConfig"),
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
