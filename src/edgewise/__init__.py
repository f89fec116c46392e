"""Reinforcement learning on graphs: the public names, each imported when it is first asked for.

Example:
    >>> import edgewise as ew
    >>> env = ew.make_env("graphwalk", num_envs=4, seed=0)
    >>> env.batch_size
    torch.Size([4])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgewise.api import evaluate, load_policy, train
    from edgewise.config.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        EdgewiseError,
        Interrupted,
        NumericalStop,
    )
    from edgewise.envs.contract import check_graph_env
    from edgewise.envs.registry import make_env
    from edgewise.objectives.graph_gae import GraphGAE

__version__ = "0.1.0"

_HOMES = {
    "CheckpointError": "edgewise.config.errors",
    "ConfigError": "edgewise.config.errors",
    "DataError": "edgewise.config.errors",
    "EdgewiseError": "edgewise.config.errors",
    "GraphGAE": "edgewise.objectives.graph_gae",
    "Interrupted": "edgewise.config.errors",
    "NumericalStop": "edgewise.config.errors",
    "check_graph_env": "edgewise.envs.contract",
    "evaluate": "edgewise.api",
    "load_policy": "edgewise.api",
    "make_env": "edgewise.envs.registry",
    "train": "edgewise.api",
}

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "EdgewiseError",
    "GraphGAE",
    "Interrupted",
    "NumericalStop",
    "__version__",
    "check_graph_env",
    "evaluate",
    "load_policy",
    "make_env",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"edgewise has no name {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
