"""Every setting, moved off its default, changes what it is said to change.

The result of a config is a few steps of its environment, a forward pass of its model, two batches of its
algorithm, or a toy run. A setting that changes none of these is listed with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from tests.algorithms.sea import AGENTS
from tests.config.results import (
    Result,
    of_agent,
    of_apg,
    of_clone,
    of_encoder,
    of_env,
    of_evolution,
    of_expert_iteration,
    of_model,
    of_ppo,
    of_reinforce,
    of_run,
    of_schedule,
    of_self_play,
)

from edgewise.algorithms.config import (
    APGConfig,
    CloneConfig,
    EvolutionConfig,
    PPOConfig,
    ReinforceConfig,
    SelfPlayConfig,
)
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.algorithms.off_policy_config import (
    ACIQNConfig,
    ContinuousConfig,
    DDPGConfig,
    DistributionalConfig,
    DQNConfig,
    IQNConfig,
    OffPolicyConfig,
    RainbowConfig,
    SACConfig,
)
from edgewise.algorithms.registry import ALGORITHMS, algorithm_config
from edgewise.config.model import Config
from edgewise.config.run import CheckpointConfig, EvaluationConfig, LoggingConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Cosine, Linear, Piecewise
from edgewise.envs.graphs_config import GraphsConfig
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.plugins import environment
from edgewise.plugins.registry import systems
from edgewise.problems.config import (
    ColoringConfig,
    CVRPConfig,
    CVRPTWConfig,
    ImmunisationConfig,
    IndependentSetConfig,
    JobShopConfig,
    MaxCutConfig,
    SelectionConfig,
    TSPConfig,
    VertexCoverConfig,
)
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.hex.config import HexConfig
from edgewise.systems.hive.config import HiveConfig
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.multihop.config import LengthsConfig, MultihopConfig, MultihopSettings
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reentrant.config import PotentialsConfig, ReentrantConfig, ReentrantSettings
from edgewise.systems.swarm.config import SwarmConfig


@dataclass(frozen=True)
class Subject:
    """A schema, and how to see what its settings do.

    Attributes:
        schema: the config class; settings that it inherits are those of its base.
        result: what follows from values of settings.
        moved: values off the default, where the next number or choice is not one, or does not show; a pair of
            such a value and of other settings that it needs to matter.
        silent: settings without an effect on the result, and why.
        base: other settings for all results.
    """

    schema: type[Config]
    result: Callable[..., Result]
    moved: dict[str, Any] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    base: dict[str, Any] = field(default_factory=dict)


CPU = "numbers are the same; compiled code is tested in tests/models/test_compile.py"
PRIOR_WEIGHT = "of models with a prior: tests/models/test_prior.py"
SPEED = "numbers are the same; it bounds memory or chooses a layout"
NOISY = {"position_noise": 1.0, "velocity_noise": 1.0}
NEEDS_AGENT = "tested with environments that need it: tests/data/test_intervention.py"
SEQUENCES = dict.fromkeys(
    ("chunk_length", "burn_in"), "for recurrent models: tests/algorithms/test_recurrent_values.py"
)
EAGER = {"epsilon": 0.0, "learning_rate": 0.03, "updates_per_transition": 0.2, "tau": 0.01}
"""Settings under which choices change within two batches."""
RANDOM_GRAPHS = {
    "num_nodes": 9,
    "family": "ba",
    "density": 0.5,
    "attachment": (2, {"family": "ba"}),
    "neighbours": (2, {"family": "ws"}),
    "rewiring": (0.9, {"family": "ws"}),
}

SUBJECTS = [
    Subject(
        GraphwalkConfig,
        of_env("graphwalk"),
        moved={"num_nodes": 5, "max_steps": 3, "max_nodes": 20},
        silent=dict.fromkeys(
            GraphsConfig.model_fields, "needs files: tests/systems/graphwalk/test_given_graphs.py"
        ),
    ),
    Subject(SelectionConfig, of_env("independent_set"), moved=RANDOM_GRAPHS),
    Subject(VertexCoverConfig, of_env("vertex_cover"), moved={"num_nodes": 9, "family": "er"}),
    Subject(IndependentSetConfig, of_env("independent_set")),
    Subject(MaxCutConfig, of_env("max_cut"), moved={"num_nodes": 9, "steps_per_node": 0.1}),
    Subject(ColoringConfig, of_env("coloring"), moved={"num_nodes": 9, "density": 0.9}),
    Subject(
        ImmunisationConfig,
        of_env("immunisation"),
        moved={"num_nodes": 9, "family": "er", "attachment": 3, "share": 0.5},
    ),
    Subject(TSPConfig, of_env("tsp"), moved={"num_cities": 9}),
    Subject(CVRPConfig, of_env("cvrp"), moved={"num_customers": 9, "capacity": 20.0}),
    Subject(CVRPTWConfig, of_env("cvrptw"), moved={"horizon": 6.0, "service": 0.1, "window": 0.5}),
    Subject(
        JobShopConfig,
        of_env("job_shop"),
        moved={"num_jobs": 4, "num_machines": 4, "durations": (5, 9), "active": False},
    ),
    Subject(
        QueueingConfig,
        of_env("queueing"),
        moved={
            "graphs": ("ring5",),
            "graph_seed": (1, {"graphs": ("geometric8",)}),
            "arrival_rates": (0.1, 0.2, 0.3),
            "load": 0.5,
            "service_rate": (2.0, {"service_law": "poisson"}),
            "service_rates": (0.5, 1.0, 1.5),
            "arrivals_servable": (True, {"arrival_rate": 0.9}),
            "interference_penalty": 3.0,
            "max_backlog": (2.0, {"initial_queue": 3}),
            "max_steps": 4,
        },
        silent={
            "interference_penalty": "random actions are independent sets: tests/systems/queueing/test_env.py"
        },
    ),
    Subject(
        MultihopConfig,
        of_env("multihop"),
        moved={"max_backlog": 1.0},
    ),
    Subject(
        MultihopSettings,
        of_env("multihop_lengths"),
        moved={
            "networks": ("diamond",),
            "network_seed": (1, {"networks": ("barabasi8*2",)}),
            "network_load": (0.4, {"networks": ("barabasi8*2",)}),
            "max_steps": 4,
        },
    ),
    Subject(LengthsConfig, of_env("multihop_lengths"), moved={"hold": 2, "prior": "flow-backpressure"}),
    Subject(
        ReentrantSettings,
        of_env("reentrant"),
        moved={
            "networks": ("re-reentrant2",),
            "network_seed": (1, {"networks": ("reentrant2*2",)}),
            "initial_jobs": 2.0,
        },
    ),
    Subject(ReentrantConfig, of_env("reentrant"), moved={"max_steps": 4, "prior": "srpt"}),
    Subject(
        PotentialsConfig,
        of_env("reentrant_potentials"),
        moved={"hold": 2, "max_steps": 4, "events_per_step": 3},
    ),
    Subject(
        SwarmConfig,
        of_env("swarm"),
        moved={
            "num_agents": 4,
            "max_steps": 4,
            "constant_density": (True, {"num_agents": 5, "max_agents": 5}),
            "goal_threshold": 0.9,
            "goal_reward": (2.0, {"goal_threshold": 0.9}),
            "collision_cost": (1.0, {"num_agents": 8, "world_size": 0.7, "num_obstacles": 0}),
            "collision_margin": (0.5, {"num_agents": 8, "world_size": 0.7, "num_obstacles": 0}),
            "walls": (True, {"world_size": 0.7}),
            "dynamics": ("double_integrator", {"continuous": True}),
            "obstacle_speed": 0.5,
            "one_way": (True, {"goal_nodes": True}),
            "max_agents": 5,
            "max_obstacles": 5,
        },
    ),
    Subject(
        MarineConfig,
        of_env("marine"),
        moved={
            "num_robots": 2,
            "min_start_goal_dis": 35.0,
            "max_steps": 4,
            "max_objects": 3,
            "detection_range": 60.0,
            "velocity_noise": 1.0,
            "position_noise": 1.0,
            "end_at_first_collision": (True, {"num_robots": 6, "num_obstacles": 6}),
            "parity": (True, {"max_steps": 4}),
            "max_robots": 5,
            "max_obstacles": 3,
            "max_cores": 3,
        },
        silent={
            "compile": CPU,
            "end_at_first_collision": "needs a collision: tests/systems/marine/test_env.py",
        },
        base=NOISY | {"velocity_noise": 0.5, "position_noise": 0.5},
    ),
    Subject(
        HexConfig,
        of_env("hex"),
        moved={"size": 5, "opening_plies": 2, "max_size": 6, "swap": (True, {"opening_plies": 1})},
        base={"size": 4},
    ),
    Subject(
        HiveConfig,
        of_env("hive"),
        moved={
            "hand": "QAGB",
            "expansions": "M",
            "max_steps": 4,
            "shaping": 0.5,
            "opening_plies": 2,
            "repetition_window": 8,
            "max_moves": 50,
        },
        base={"hand": "QAAGB"},
    ),
    Subject(
        ReasoningConfig,
        of_env("reasoning"),
        moved={
            "data": "countries_s2",
            "withheld": 0.5,
            "max_atoms": 3,
            "max_successors": 5,
            "max_steps": 2,
            "limit_fails": (True, {"max_steps": 2}),
            "reward": 1,
        },
        silent={
            "rules": "names a file: tests/systems/reasoning",
            "assume": "needs embeddings: tests/systems/reasoning",
            "proof_depths": "needs proofs of several lengths: tests/systems/reasoning/test_env.py",
        },
    ),
    Subject(
        EncoderConfig,
        of_encoder,
        moved={
            "kind": "mlp",
            "hidden": 32,
            "heads": 4,
            "conv": ("SAGEConv", {"kind": "gnn"}),
            "feed_forward": 2,
            "edge_hidden": 3,
            "layers": 2,
        },
        silent={
            "dense": SPEED,
            "compact": SPEED,
            "part_size": "the same numbers with less memory: tests/models/encoders/test_partition.py",
        },
    ),
    Subject(
        ModelConfig,
        of_model,
        moved={
            "encoder": {"hidden": 8, "layers": 1, "heads": 2},
            "head_hidden": (8,),
            "critic": "graph",
        },
        silent={
            "head": "names an own head: tests/extensions/test_every_way.py",
            "reencode": "for instances that are described once: tests/models/test_remaining.py",
            "logit_clip": "for instances that are encoded once: tests/models/test_decoder.py",
            "prior": "for environments that have a rule: tests/systems/queueing/models/test_set_tables.py",
            "recurrent": "takes sequences: tests/algorithms/test_recurrent.py",
        },
    ),
    Subject(
        PPOConfig,
        of_ppo,
        moved={
            "value_clip": 1e-3,
            "huber_delta": 1e-2,
            "target_kl": 1e-9,
            "average_reward": (True, {"gamma": 1.0}),
            "minibatch_size": 16,
            "clip": 1e-3,
            "entropy_coefficient": 0.1,
        },
        silent={
            "chunk_length": "for recurrent models: tests/algorithms/test_recurrent.py",
            "prior_weight": PRIOR_WEIGHT,
            "value_chunk_size": SPEED,
            "boundary_budget": SPEED,
            "intervention": NEEDS_AGENT,
            "intervention_above": NEEDS_AGENT,
        },
    ),
    Subject(
        CloneConfig,
        of_clone,
        moved={"expert_share": 0.0, "buffer_size": 10, "minibatch_size": 32, "max_grad_norm": 1e-3},
        silent={"expert": "names a baseline, which the builder makes: tests/algorithms/test_clone.py"},
    ),
    Subject(
        APGConfig,
        of_apg,
        moved={"minibatch_size": 16, "max_grad_norm": 1e-3},
        silent={
            "through_observations": "actions do not change what is observed: tests/algorithms/test_apg.py",
            "prior_weight": PRIOR_WEIGHT,
        },
    ),
    Subject(
        EvolutionConfig,
        of_evolution,
        moved={"pairs": 2, "sigma": 0.3, "ranks": "mean", "weight_decay": 0.1},
        silent={
            "longest_episode": "an error where it is exceeded: tests/algorithms/test_evolution.py",
            "prior_weight": PRIOR_WEIGHT,
        },
    ),
    Subject(
        ReinforceConfig,
        of_reinforce,
        moved={
            "starts": 4,
            "credit": "best",
            "leader_weight": (8.0, {"credit": "leader"}),
            "first_actions": "different",
            "gamma": 0.5,
            "max_grad_norm": 1e-3,
            "minibatch_size": 8,
        },
        silent={
            "symmetries": "needs an environment that has some: tests/data/test_episodes.py",
            "prior_weight": PRIOR_WEIGHT,
            "longest_episode": "an error where it is exceeded: tests/algorithms/test_reinforce.py",
            **dict.fromkeys(
                ("challenge_every", "challenge_instances", "significance"),
                "decide when the greedy baseline is replaced: tests/algorithms/test_reinforce.py",
            ),
        },
    ),
    Subject(
        ExpertIterationConfig,
        of_expert_iteration,
        moved={
            "considered": 2,
            "minibatch_size": 8,
            "max_grad_norm": 1e-3,
        },
        silent={"buffer_size": "holds a batch or more: tests/data/test_position_buffer.py"},
        base={"simulations": 4, "considered": 3},
    ),
    Subject(
        SelfPlayConfig,
        of_self_play,
        moved={
            "opponents": 1,
            "gate": (0.05, {"gate_games": 4}),
            "pool_size": 1,
            "baselines": ("random",),
            "baseline_share": (0.5, {"baselines": ("random",)}),
        },
        silent={"gate_games": "bounds a contest: tests/training/self_play/test_rollout.py"},
        base={"snapshot_every": 1},
    ),
    Subject(
        OffPolicyConfig,
        of_agent("dqn"),
        moved={
            "gamma": 0.9,
            "n_step": 3,
            "max_grad_norm": 1e-3,
            "learning_starts": 10**6,
            "target_interval": 3,
            "tau": 0.9,
            "epsilon": 0.9,
            "replay_size": 32,
            "minibatch_size": 8,
            "updates_per_transition": 0.2,
            "alpha": (0.9, {"prioritised": True}),
            "beta": (0.9, {"prioritised": True}),
            "cloning_coefficient": 1.0,
        },
        silent={
            "replay_storage": "numbers are the same: tests/data/test_replay_buffer.py",
            "expert": "names a baseline, which the builder makes: tests/algorithms/test_off_policy.py",
            "expert_share": "needs an expert: tests/algorithms/test_off_policy.py",
        },
    ),
    Subject(
        DQNConfig,
        of_agent("dqn"),
        moved={"huber_delta": 1e-2},
        base=EAGER,
        silent={
            **SEQUENCES,
            "mixing": "for teams with one reward: tests/algorithms",
            "retrace": "for decisions of a whole world: tests/algorithms/test_exactness.py",
        },
    ),
    Subject(
        DistributionalConfig,
        of_agent("iqn"),
        silent=dict.fromkeys(
            DistributionalConfig.__annotations__,
            "decides between close choices: tests/algorithms/test_iqn.py",
        ),
    ),
    Subject(
        RainbowConfig, of_agent("rainbow"), moved={"v_min": -3.0, "v_max": 3.0, "n_step": 1, "epsilon": 0.9}
    ),
    Subject(
        IQNConfig,
        of_agent("iqn"),
        moved={"kappa": 0.01, "exploring_quantiles": 2},
        silent={
            **SEQUENCES,
            "acting_quantiles": "decides between close choices: tests/algorithms/test_iqn.py",
        },
        base=EAGER,
    ),
    Subject(ContinuousConfig, of_agent("ddpg"), moved={"actor_share": 0.1}),
    Subject(
        DDPGConfig,
        of_agent("ddpg"),
        moved={"huber_delta": 1e-2},
        silent={"mixing": "for teams with one reward: tests/algorithms"},
    ),
    Subject(ACIQNConfig, of_agent("ac-iqn"), moved={"kappa": 0.01}),
    Subject(
        SACConfig,
        of_agent("sac"),
        moved={"target_entropy": -0.3, "epsilon": 0.9},
        silent={"dueling": "for choices: tests/algorithms"},
    ),
    Subject(
        Linear,
        of_schedule(Linear, start=1.0),
        moved={"start": 2.0, "end": 0.5, "frames": 300},
        silent={"kind": "selects"},
    ),
    Subject(
        Cosine,
        of_schedule(Cosine, start=1.0),
        moved={"start": 2.0, "end": 0.5, "frames": 300, "warmup_frames": 200},
        silent={"kind": "selects"},
    ),
    Subject(
        Piecewise,
        of_schedule(Piecewise, points=((0, 1.0), (500, 2.0))),
        moved={"points": ((0, 1.0), (500, 3.0))},
        silent={"kind": "selects"},
    ),
    Subject(
        TrainingConfig,
        of_run("training"),
        moved={
            "total_frames": 64,
            "minutes": 1e-9,
            "cpu_minutes": 1e-9,
            "num_envs": 2,
            "rollout_length": 8,
            "schedules": {"learning_rate": {"kind": "linear", "start": 0.1}},
            "curriculum": [{"name": "large", "env": {"scale": 9.0}}],
        },
        silent={"compile": CPU},
    ),
    Subject(
        EvaluationConfig,
        of_run("evaluation"),
        moved={"every": 16, "episodes": 5, "metric": "length"},
        silent=dict.fromkeys(
            ("settings", "stages", "baselines"), "read by the builder: tests/experiments/test_build.py"
        ),
    ),
    Subject(
        CheckpointConfig,
        of_run("checkpoint"),
        moved={"every": (16, {"keep_last": 9}), "minutes": (1e-9, {"keep_last": 9}), "keep_last": 1},
    ),
    Subject(LoggingConfig, of_run("logging"), moved={"replays": 0, "tensorboard": True}),
    Subject(
        RunConfig,
        of_run(),
        moved={"seed": 1},
        silent=dict.fromkeys(set(RunConfig.model_fields) - {"seed"}, "names, places, or a schema of its own"),
    ),
]
BY_NAME = {subject.schema.__name__: subject for subject in SUBJECTS}


def own_settings(schema):
    """Settings that a schema declares itself, or inherits from a class that is no subject."""
    covered = {name for base in schema.__mro__[1:] if base.__name__ in BY_NAME for name in base.model_fields}
    declared = set(schema.__annotations__)
    return [name for name in schema.model_fields if name in declared or name not in covered]


CASES = [
    pytest.param(subject, name, id=f"{subject.schema.__name__}-{name}")
    for subject in SUBJECTS
    for name in own_settings(subject.schema)
    if name not in subject.silent
]


def moved_value(subject, name):
    """A value of a setting off its default, and the other settings that it needs."""
    if name in subject.moved:
        given = subject.moved[name]
        pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)
        return given if pair else (given, {})
    declared = subject.schema.model_fields[name]
    default = subject.base.get(name, declared.default)
    if isinstance(default, bool):
        return not default, {}
    if get_origin(declared.annotation) is Literal:
        return next(choice for choice in get_args(declared.annotation) if choice != default), {}
    if isinstance(default, int):
        return default + 1, {}
    assert isinstance(default, float), f"{subject.schema.__name__}.{name} needs a value in `moved`"
    return (default * 0.5 if default else 0.5), {}


@cache
def expected(name, needed):
    subject = BY_NAME[name]
    return subject.result(**(subject.base | dict(needed)))


def same(one, other):
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape
        and torch.equal(one[name].nan_to_num(9.0), other[name].nan_to_num(9.0))
        if one[name].is_floating_point()
        else torch.equal(one[name], other[name])
        for name in one
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("subject", "name"), CASES)
def test_a_setting_off_its_default_changes_the_result(subject, name):
    value, needed = moved_value(subject, name)
    usual = expected(subject.schema.__name__, tuple(sorted(needed.items())))
    assert not same(usual, subject.result(**(subject.base | needed | {name: value})))


@pytest.mark.parametrize("subject", SUBJECTS, ids=BY_NAME)
def test_the_same_settings_give_the_same_result(subject):
    """Otherwise any result would differ from any other."""
    assert same(expected(subject.schema.__name__, ()), subject.result(**subject.base))


def test_no_schema_of_an_environment_or_algorithm_is_left_out():
    shipped = [name for system in systems() for name in system.environments]
    schemas = {environment(name).load("config") for name in shipped}
    schemas |= {algorithm_config(name) for name in ALGORITHMS}
    assert {schema.__name__ for schema in schemas} <= set(BY_NAME)


def test_no_setting_is_listed_that_does_not_exist():
    for subject in SUBJECTS:
        known = set(subject.schema.model_fields)
        assert set(subject.moved) | set(subject.base) | set(subject.silent) <= known, subject.schema
    assert set(AGENTS) == {"dqn", "rainbow", "iqn", "ddpg", "ac-iqn", "sac"}
