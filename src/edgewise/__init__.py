"""Reinforcement learning on graphs: the public names, each imported when it is first used.

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
    from edgewise.algorithms.algorithm import Algorithm
    from edgewise.algorithms.apg import APG
    from edgewise.algorithms.clone import Clone
    from edgewise.algorithms.config import (
        APGConfig,
        CloneConfig,
        PPOConfig,
        ReinforceConfig,
        SelfPlayConfig,
    )
    from edgewise.algorithms.ppo import PPO
    from edgewise.algorithms.reinforce import REINFORCE
    from edgewise.algorithms.setup import Setup
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
    from edgewise.data.random_policy import RandomPolicy
    from edgewise.data.replay_buffer import ReplayBuffer
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
    from edgewise.experiments.policy import TrainedPolicy
    from edgewise.experiments.recipe import Recipe
    from edgewise.experiments.run import Run
    from edgewise.graphs.actions import (
        ActionLayout,
        AgentsContinuous,
        AgentsDiscrete,
        ChooseEdgePerGroup,
        ChooseFromSet,
        ChooseNode,
        EdgesDiscrete,
    )
    from edgewise.graphs.convert import from_networkx, from_pyg, to_networkx, to_pyg
    from edgewise.graphs.datasets import GraphInstances, load_graphs, read_graphs
    from edgewise.graphs.edges import Edges, EdgeSource, Explicit
    from edgewise.graphs.graph_set import GraphSet
    from edgewise.graphs.proximity import Nearest, Radius
    from edgewise.graphs.spec import GraphSpec
    from edgewise.graphs.topology import Topology
    from edgewise.models.actor_critic import make_actor_critic
    from edgewise.models.build import make_encoder, make_head
    from edgewise.models.config import EncoderConfig, ModelConfig
    from edgewise.models.encoders.encoder import GraphEncoder
    from edgewise.models.heads import Head
    from edgewise.objectives.graph_gae import GraphGAE
    from edgewise.objectives.retrace import retrace_target
    from edgewise.objectives.vtrace import vtrace
    from edgewise.objectives.without_vmap import without_vmap
    from edgewise.plugins import System, Verb, register
    from edgewise.training.callbacks import Callback, RunInfo, StopTraining

__version__ = "0.2.0"

_HOMES = {
    "APG": "edgewise.algorithms.apg",
    "APGConfig": "edgewise.algorithms.config",
    "ActionLayout": "edgewise.graphs.actions",
    "AgentsContinuous": "edgewise.graphs.actions",
    "AgentsDiscrete": "edgewise.graphs.actions",
    "Algorithm": "edgewise.algorithms.algorithm",
    "Callback": "edgewise.training.callbacks",
    "CheckpointError": "edgewise.config.errors",
    "ChooseEdgePerGroup": "edgewise.graphs.actions",
    "ChooseFromSet": "edgewise.graphs.actions",
    "ChooseNode": "edgewise.graphs.actions",
    "Clone": "edgewise.algorithms.clone",
    "CloneConfig": "edgewise.algorithms.config",
    "Config": "edgewise.config.model",
    "ConfigError": "edgewise.config.errors",
    "DataError": "edgewise.config.errors",
    "EdgeSource": "edgewise.graphs.edges",
    "Edges": "edgewise.graphs.edges",
    "EdgesDiscrete": "edgewise.graphs.actions",
    "EdgewiseError": "edgewise.config.errors",
    "EncoderConfig": "edgewise.models.config",
    "Explicit": "edgewise.graphs.edges",
    "GraphEncoder": "edgewise.models.encoders.encoder",
    "GraphEnv": "edgewise.envs.base",
    "GraphGAE": "edgewise.objectives.graph_gae",
    "GraphInstances": "edgewise.graphs.datasets",
    "GraphSet": "edgewise.graphs.graph_set",
    "GraphSpec": "edgewise.graphs.spec",
    "GraphsConfig": "edgewise.envs.graphs_config",
    "Head": "edgewise.models.heads",
    "Interrupted": "edgewise.config.errors",
    "ModelConfig": "edgewise.models.config",
    "Nearest": "edgewise.graphs.proximity",
    "NumericalStop": "edgewise.config.errors",
    "PPO": "edgewise.algorithms.ppo",
    "PPOConfig": "edgewise.algorithms.config",
    "REINFORCE": "edgewise.algorithms.reinforce",
    "Radius": "edgewise.graphs.proximity",
    "RandomPolicy": "edgewise.data.random_policy",
    "RealRange": "edgewise.envs.ranges",
    "Recipe": "edgewise.experiments.recipe",
    "ReinforceConfig": "edgewise.algorithms.config",
    "ReplayBuffer": "edgewise.data.replay_buffer",
    "Rollout": "edgewise.data.rollout",
    "Run": "edgewise.experiments.run",
    "RunConfig": "edgewise.config.run",
    "RunInfo": "edgewise.training.callbacks",
    "SelfPlayConfig": "edgewise.algorithms.config",
    "Setup": "edgewise.algorithms.setup",
    "StopTraining": "edgewise.training.callbacks",
    "System": "edgewise.plugins",
    "Topology": "edgewise.graphs.topology",
    "TrainedPolicy": "edgewise.experiments.policy",
    "Transition": "edgewise.envs.transition",
    "Verb": "edgewise.plugins",
    "WholeRange": "edgewise.envs.ranges",
    "check_graph_env": "edgewise.envs.contract",
    "evaluate": "edgewise.api",
    "from_gymnasium": "edgewise.envs.adapters.from_gymnasium",
    "from_networkx": "edgewise.graphs.convert",
    "from_pettingzoo": "edgewise.envs.adapters.from_pettingzoo",
    "from_pyg": "edgewise.graphs.convert",
    "load_graphs": "edgewise.graphs.datasets",
    "load_policy": "edgewise.api",
    "lower_bound": "edgewise.envs.ranges",
    "make_actor_critic": "edgewise.models.actor_critic",
    "make_encoder": "edgewise.models.build",
    "make_env": "edgewise.envs.registry",
    "make_head": "edgewise.models.build",
    "open_run": "edgewise.api",
    "read_graphs": "edgewise.graphs.datasets",
    "register": "edgewise.plugins",
    "retrace_target": "edgewise.objectives.retrace",
    "to_gymnasium": "edgewise.envs.adapters.to_gymnasium",
    "to_networkx": "edgewise.graphs.convert",
    "to_pettingzoo": "edgewise.envs.adapters.to_pettingzoo",
    "to_pyg": "edgewise.graphs.convert",
    "train": "edgewise.api",
    "upper_bound": "edgewise.envs.ranges",
    "vtrace": "edgewise.objectives.vtrace",
    "without_vmap": "edgewise.objectives.without_vmap",
}

__all__ = [
    "APG",
    "APGConfig",
    "ActionLayout",
    "AgentsContinuous",
    "AgentsDiscrete",
    "Algorithm",
    "Callback",
    "CheckpointError",
    "ChooseEdgePerGroup",
    "ChooseFromSet",
    "ChooseNode",
    "Clone",
    "CloneConfig",
    "Config",
    "ConfigError",
    "DataError",
    "EdgeSource",
    "Edges",
    "EdgesDiscrete",
    "EdgewiseError",
    "EncoderConfig",
    "Explicit",
    "GraphEncoder",
    "GraphEnv",
    "GraphGAE",
    "GraphInstances",
    "GraphSet",
    "GraphSpec",
    "GraphsConfig",
    "Head",
    "Interrupted",
    "ModelConfig",
    "Nearest",
    "NumericalStop",
    "PPO",
    "PPOConfig",
    "REINFORCE",
    "Radius",
    "RandomPolicy",
    "RealRange",
    "Recipe",
    "ReinforceConfig",
    "ReplayBuffer",
    "Rollout",
    "Run",
    "RunConfig",
    "RunInfo",
    "SelfPlayConfig",
    "Setup",
    "StopTraining",
    "System",
    "Topology",
    "TrainedPolicy",
    "Transition",
    "Verb",
    "WholeRange",
    "check_graph_env",
    "evaluate",
    "from_gymnasium",
    "from_networkx",
    "from_pettingzoo",
    "from_pyg",
    "load_graphs",
    "load_policy",
    "lower_bound",
    "make_actor_critic",
    "make_encoder",
    "make_env",
    "make_head",
    "open_run",
    "read_graphs",
    "register",
    "retrace_target",
    "to_gymnasium",
    "to_networkx",
    "to_pettingzoo",
    "to_pyg",
    "train",
    "upper_bound",
    "vtrace",
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
