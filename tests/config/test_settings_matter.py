"""Every setting, moved off its default, changes what it is said to change.

The result of a config is a few steps of its environment, a forward pass of its model, or two batches of its
algorithm. A setting that changes none of these is listed with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from tensordict import TensorDictBase
from tests.algorithms.experts import SETTINGS as CLONE
from tests.algorithms.experts import imitator
from tests.algorithms.sea import AGENTS, SEA_OF, agent, sea
from tests.algorithms.worlds import SETTINGS as PPO
from tests.algorithms.worlds import learner, toy
from torchrl.envs.utils import ExplorationType, set_exploration_type

from edgewise.algorithms.config import CloneConfig, PPOConfig
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
from edgewise.config.model import Config
from edgewise.config.schedules import Cosine, Linear, Piecewise
from edgewise.data.rollout import Rollout
from edgewise.envs.given_graphs import GraphsConfig
from edgewise.envs.registry import make_env
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.hex.config import HexConfig
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.multihop.config import MultihopConfig
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.swarm.config import SwarmConfig

Result = dict[str, torch.Tensor]


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


def leaves(root: TensorDictBase, prefix: str = "") -> Result:
    found = {}
    for name, value in root.items(include_nested=True, leaves_only=True):
        found[prefix + (name if isinstance(name, str) else ".".join(name))] = value
    return found


def of_env(name):
    def result(**settings):
        env = make_env(name, num_envs=8, seed=0, **settings)
        torch.manual_seed(0)
        root, found = env.reset(), {}
        for number in range(8):
            step, root = env.step_and_maybe_reset(env.rand_action(root))
            found |= leaves(step, f"{number}.")
        edges = env.graph.edges_of(root["graph"])
        found |= {
            "edges": edges.index * edges.mask.unsqueeze(-2),
            "capacity": torch.tensor(env.graph.num_nodes),
        }
        return found

    return result


def of_encoder(**settings):
    return of_model(encoder={"hidden": 16, "layers": 1, "heads": 2} | settings)


def of_model(**settings):
    torch.manual_seed(0)
    config = ModelConfig.model_validate({"encoder": {"hidden": 16, "layers": 1, "heads": 2}} | settings)
    found = {}
    for name, settings in (("graphwalk", {}), ("swarm", {"continuous": True})):
        env = make_env(name, num_envs=4, seed=0, **settings)
        made = make_actor_critic(env.graph, env.actions, config)
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            root = made.actor(env.reset())
            distribution, value = made.evaluate(root)
            found |= {
                f"{name}.action": root["action"],
                f"{name}.value": value,
                f"{name}.entropy": distribution.entropy(),
            }
        found |= {f"{name}.{key}": value for key, value in made.state_dict().items()}
    return found


def of_ppo(**settings):
    config = PPOConfig.model_validate(PPO.model_dump() | {"epochs": 2} | settings)
    env = toy("signals", num_envs=8)
    algorithm = learner(env, config=config)
    batch = Rollout(env, algorithm.policy, rollout_length=12).collect().clone()
    found = {}
    for number in range(2):
        found |= {f"{number}.{name}": value for name, value in algorithm.learn(batch.clone()).items()}
    return found | algorithm.actor_critic.state_dict()


def of_clone(**settings):
    config = CloneConfig.model_validate(CLONE.model_dump() | {"updates": 2, "minibatch_size": 16} | settings)
    env = toy("signals", num_envs=8)
    algorithm = imitator(env, config=config)
    torch.manual_seed(0)
    rollout, found = Rollout(env, algorithm.behaviour, rollout_length=8), {}
    for number in range(2):
        batch = rollout.collect().clone()
        found |= {f"{number}.action": batch["action"]} | algorithm.learn(batch)
    return found | algorithm.actor_critic.state_dict()


def of_agent(name):
    small = {"learning_starts": 0, "minibatch_size": 16, "updates_per_transition": 0.05, "tau": 0.5}

    def result(**settings):
        learner, env = agent(name, **(small | settings)), sea(SEA_OF[name], num_envs=6)
        torch.manual_seed(0)
        rollout, found = Rollout(env, learner.policy, rollout_length=8), {}
        for number in range(2):
            batch = rollout.collect().clone()
            found |= {f"{number}.action": batch["action"]}
            found |= {f"{number}.{key}": value for key, value in learner.learn(batch).items()}
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            found["mode"] = learner.policy(env.reset())["action"]
        return found | {
            **learner.networks.state_dict(),
            **{f"target.{k}": v for k, v in learner.targets.state_dict().items()},
        }

    return result


def of_schedule(schema, **needed):
    def result(**settings):
        made = schema.model_validate(needed | settings)
        return {"values": torch.tensor([made.at(frames, 1000) for frames in range(0, 1200, 50)])}

    return result


CPU = "numbers are the same; compiled code is tested in tests/graphs/test_compile.py"
SPEED = "numbers are the same; it bounds memory or chooses a layout"
NOISY = {"position_noise": 1.0, "velocity_noise": 1.0}
NEEDS_AGENT = "tested with environments that need it: tests/data/test_intervention.py"
EAGER = {"epsilon": 0.0, "learning_rate": 0.03, "updates_per_transition": 0.2, "tau": 0.01}
"""Settings under which choices change within two batches."""
SUBJECTS = [
    Subject(
        GraphwalkConfig,
        of_env("graphwalk"),
        moved={"num_nodes": 5, "max_steps": 3, "max_nodes": 20},
        silent=dict.fromkeys(
            GraphsConfig.model_fields, "needs files: tests/systems/graphwalk/test_given_graphs.py"
        ),
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
            "service_deviation": (0.3, {"service_law": "normal"}),
            "arrivals_servable": (True, {"arrival_rate": 0.9}),
            "interference_penalty": 3.0,
            "max_backlog": (2.0, {"initial_queue": 3}),
            "overflow_cost": (7.0, {"initial_queue": 3, "max_backlog": 2.0}),
            "max_steps": 4,
        },
        silent={
            "interference_penalty": "random actions are independent sets: tests/systems/queueing/test_env.py"
        },
    ),
    Subject(
        MultihopConfig,
        of_env("multihop"),
        moved={
            "networks": ("diamond",),
            "network_seed": (1, {"networks": ("barabasi8*2",)}),
            "network_load": (0.4, {"networks": ("barabasi8*2",)}),
            "max_backlog": 1.0,
            "overflow_cost": (7.0, {"max_backlog": 1.0}),
            "max_steps": 4,
        },
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
            "walls": (True, {"world_size": 0.7}),
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
            "end_at_first_collision": "needs a collision: tests/systems/marine/test_marine.py",
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
        EncoderConfig,
        of_encoder,
        moved={
            "kind": "mlp",
            "hidden": 32,
            "heads": 4,
            "conv": ("SAGEConv", {"kind": "gnn"}),
            "feed_forward": 2,
            "soft_cap": 1e-3,
            "layers": 2,
        },
        silent={
            "compile": CPU,
            "dense": SPEED,
            "compact": SPEED,
            "dropout": "acts while learning alone: tests/models/test_transformer.py",
        },
    ),
    Subject(
        ModelConfig,
        of_model,
        moved={
            "encoder": {"hidden": 8, "layers": 1, "heads": 2},
            "head_hidden": (8,),
            "critic": "graph",
            "min_std": 0.3,
        },
        silent={
            "sets": "for independent sets: tests/models/test_maximal_set.py",
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
            "value_decay": (0.1, {"normalise_value": True}),
            "average_reward": (True, {"gamma": 1.0}),
            "average_decay": (0.1, {"gamma": 1.0, "average_reward": True}),
            "adam_epsilon": 1.0,
            "minibatch_size": 16,
            "clip": 1e-3,
            "entropy_coefficient": 0.1,
        },
        silent={
            "chunk_length": "for recurrent models: tests/algorithms/test_recurrent.py",
            "value_chunk_size": SPEED,
            "boundary_budget": SPEED,
            "two_player": "for games: tests/objectives/test_two_ply_game.py",
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
        OffPolicyConfig,
        of_agent("dqn"),
        moved={
            "gamma": 0.9,
            "n_step": 3,
            "adam_epsilon": 1.0,
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
        silent={"mixing": "for teams with one reward: tests/algorithms"},
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
        silent={"acting_quantiles": "decides between close choices: tests/algorithms/test_iqn.py"},
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


def test_no_setting_is_listed_that_does_not_exist():
    for subject in SUBJECTS:
        known = set(subject.schema.model_fields)
        assert set(subject.moved) | set(subject.base) | set(subject.silent) <= known, subject.schema
    assert set(AGENTS) == {"dqn", "rainbow", "iqn", "ddpg", "ac-iqn", "sac"}
