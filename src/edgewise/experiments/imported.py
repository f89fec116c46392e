"""Weights that another program trained, as the start of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from edgewise.algorithms.algorithm import Algorithm
from edgewise.config.errors import ConfigError
from edgewise.config.run import AnyRun

Weights = Mapping[str, Tensor]
SECTIONS = ("networks", "targets")
"""Parts of an algorithm's state that hold weights by name."""


@dataclass(frozen=True)
class Imported:
    """What an environment's `importer` reads from a file.

    Args:
        config: of the run, with the network that the weights were trained in.
        weights: tensors by their name in the algorithm's networks.
    """

    config: AnyRun
    weights: Weights


def set_weights(algorithm: Algorithm, weights: Weights) -> None:
    """Replace weights of an algorithm's networks, and of its target networks, by name.

    Raises:
        ConfigError: the networks have no such name, or another shape.
    """
    state = dict(algorithm.state_dict())
    networks = state["networks"]
    for name, value in weights.items():
        if name not in networks or networks[name].shape != value.shape:
            has = f"shape {list(networks[name].shape)}" if name in networks else "no such weight"
            raise ConfigError(f"{name}: got shape {list(value.shape)}, but the network has {has}")
    for section in SECTIONS:
        given = {name: value for name, value in weights.items() if name in state[section]}
        state[section] = {
            **state[section],
            **{name: value.to(state[section][name].dtype) for name, value in given.items()},
        }
    algorithm.load_state_dict(state)
