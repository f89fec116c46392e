"""Reinforcement learning on graphs: the public names, each imported when it is first used.

Example:
    >>> import edgewise as ew
    >>> env = ew.make_env("graphwalk", num_envs=4, seed=0)
    >>> env.batch_size
    torch.Size([4])
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgewise.algorithms.algorithm import Algorithm
    from edgewise.algorithms.config import PPOConfig
    from edgewise.algorithms.ppo import PPO
    from edgewise.api import evaluate, load_policy, open_run, train
    from edgewise.config.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        EdgewiseError,
        Interrupted,
        NumericalStop,
    )
    from edgewise.config.model import Config
    from edgewise.config.run import RunConfig
    from edgewise.data.rollout import Rollout
    from edgewise.envs.adapters.from_gymnasium import from_gymnasium
    from edgewise.envs.adapters.from_pettingzoo import from_pettingzoo
    from edgewise.envs.adapters.to_gymnasium import to_gymnasium
    from edgewise.envs.adapters.to_pettingzoo import to_pettingzoo
    from edgewise.envs.base import GraphEnv
    from edgewise.envs.contract import check_graph_env
    from edgewise.envs.graphs_config import GraphsConfig
    from edgewise.envs.ranges import RealRange, WholeRange, lower_bound, upper_bound
    from edgewise.envs.registry import make_env
    from edgewise.envs.transition import Transition
    from edgewise.experiments.recipe import Recipe
    from edgewise.experiments.run import Run
    from edgewise.graphs.actions import (
        ActionLayout,
        AgentsContinuous,
        AgentsDiscrete,
        Amount,
        Category,
        ChooseEdge,
        ChooseEdgePerGroup,
        ChooseFromSet,
        ChooseNode,
        EdgesDiscrete,
        Joint,
        PerEdge,
        PerNode,
        Then,
    )
    from edgewise.graphs.convert import from_pyg, to_pyg
    from edgewise.graphs.datasets import load_graphs
    from edgewise.graphs.edges import EdgeSource, Explicit
    from edgewise.graphs.proximity import Nearest, Radius
    from edgewise.graphs.spec import GraphSpec
    from edgewise.graphs.topology import Topology
    from edgewise.models.actor_critic import make_actor_critic
    from edgewise.models.bridge import union
    from edgewise.models.config import EncoderConfig, ModelConfig
    from edgewise.models.encoders.encoder import GraphEncoder
    from edgewise.models.heads import Head
    from edgewise.objectives.graph_gae import GraphGAE
    from edgewise.objectives.without_vmap import without_vmap
    from edgewise.plugins import System, Verb, register
    from edgewise.training.callbacks import Callback, StopTraining

if sys.platform == "win32":
    raise ImportError("edgewise runs on Linux and macOS; on Windows, install it inside WSL 2")

__version__ = "0.3.0"

_HOMES = {
    "ActionLayout": "edgewise.graphs.actions",
    "AgentsContinuous": "edgewise.graphs.actions",
    "AgentsDiscrete": "edgewise.graphs.actions",
    "Algorithm": "edgewise.algorithms.algorithm",
    "Amount": "edgewise.graphs.actions",
    "Callback": "edgewise.training.callbacks",
    "Category": "edgewise.graphs.actions",
    "CheckpointError": "edgewise.config.errors",
    "ChooseEdge": "edgewise.graphs.actions",
    "ChooseEdgePerGroup": "edgewise.graphs.actions",
    "ChooseFromSet": "edgewise.graphs.actions",
    "ChooseNode": "edgewise.graphs.actions",
    "Config": "edgewise.config.model",
    "ConfigError": "edgewise.config.errors",
    "DataError": "edgewise.config.errors",
    "EdgeSource": "edgewise.graphs.edges",
    "EdgesDiscrete": "edgewise.graphs.actions",
    "EdgewiseError": "edgewise.config.errors",
    "EncoderConfig": "edgewise.models.config",
    "Explicit": "edgewise.graphs.edges",
    "GraphEncoder": "edgewise.models.encoders.encoder",
    "GraphEnv": "edgewise.envs.base",
    "GraphGAE": "edgewise.objectives.graph_gae",
    "GraphSpec": "edgewise.graphs.spec",
    "GraphsConfig": "edgewise.envs.graphs_config",
    "Head": "edgewise.models.heads",
    "Interrupted": "edgewise.config.errors",
    "Joint": "edgewise.graphs.actions",
    "ModelConfig": "edgewise.models.config",
    "Nearest": "edgewise.graphs.proximity",
    "NumericalStop": "edgewise.config.errors",
    "PPO": "edgewise.algorithms.ppo",
    "PPOConfig": "edgewise.algorithms.config",
    "PerEdge": "edgewise.graphs.actions",
    "PerNode": "edgewise.graphs.actions",
    "Radius": "edgewise.graphs.proximity",
    "RealRange": "edgewise.envs.ranges",
    "Recipe": "edgewise.experiments.recipe",
    "Rollout": "edgewise.data.rollout",
    "Run": "edgewise.experiments.run",
    "RunConfig": "edgewise.config.run",
    "StopTraining": "edgewise.training.callbacks",
    "System": "edgewise.plugins",
    "Then": "edgewise.graphs.actions",
    "Topology": "edgewise.graphs.topology",
    "Transition": "edgewise.envs.transition",
    "Verb": "edgewise.plugins",
    "WholeRange": "edgewise.envs.ranges",
    "check_graph_env": "edgewise.envs.contract",
    "evaluate": "edgewise.api",
    "from_gymnasium": "edgewise.envs.adapters.from_gymnasium",
    "from_pettingzoo": "edgewise.envs.adapters.from_pettingzoo",
    "from_pyg": "edgewise.graphs.convert",
    "load_graphs": "edgewise.graphs.datasets",
    "load_policy": "edgewise.api",
    "lower_bound": "edgewise.envs.ranges",
    "make_actor_critic": "edgewise.models.actor_critic",
    "make_env": "edgewise.envs.registry",
    "open_run": "edgewise.api",
    "register": "edgewise.plugins",
    "to_gymnasium": "edgewise.envs.adapters.to_gymnasium",
    "to_pettingzoo": "edgewise.envs.adapters.to_pettingzoo",
    "to_pyg": "edgewise.graphs.convert",
    "train": "edgewise.api",
    "union": "edgewise.models.bridge",
    "upper_bound": "edgewise.envs.ranges",
    "without_vmap": "edgewise.objectives.without_vmap",
}

__all__ = [
    "ActionLayout",
    "AgentsContinuous",
    "AgentsDiscrete",
    "Algorithm",
    "Amount",
    "Callback",
    "Category",
    "CheckpointError",
    "ChooseEdge",
    "ChooseEdgePerGroup",
    "ChooseFromSet",
    "ChooseNode",
    "Config",
    "ConfigError",
    "DataError",
    "EdgeSource",
    "EdgesDiscrete",
    "EdgewiseError",
    "EncoderConfig",
    "Explicit",
    "GraphEncoder",
    "GraphEnv",
    "GraphGAE",
    "GraphSpec",
    "GraphsConfig",
    "Head",
    "Interrupted",
    "Joint",
    "ModelConfig",
    "Nearest",
    "NumericalStop",
    "PPO",
    "PPOConfig",
    "PerEdge",
    "PerNode",
    "Radius",
    "RealRange",
    "Recipe",
    "Rollout",
    "Run",
    "RunConfig",
    "StopTraining",
    "System",
    "Then",
    "Topology",
    "Transition",
    "Verb",
    "WholeRange",
    "check_graph_env",
    "evaluate",
    "from_gymnasium",
    "from_pettingzoo",
    "from_pyg",
    "load_graphs",
    "load_policy",
    "lower_bound",
    "make_actor_critic",
    "make_env",
    "open_run",
    "register",
    "to_gymnasium",
    "to_pettingzoo",
    "to_pyg",
    "train",
    "union",
    "upper_bound",
    "without_vmap",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"edgewise has no name {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
