"""Puts the parts of an off-policy run together: robots that see, a replay, perhaps an expert."""

from __future__ import annotations

from typing import Any

import torch

from edgewise.algorithms.off_policy import OffPolicy
from edgewise.algorithms.registry import algorithm_class
from edgewise.config.errors import ConfigError
from edgewise.data.demonstrations import Mixture
from edgewise.data.rollout import Policy, Rollout
from edgewise.data.transitions import EGO
from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import entry
from edgewise.models.ego import EgoSpec
from edgewise.recipes.compose import Instances, check_device, make_worlds, stream
from edgewise.recipes.imitate import make_expert
from edgewise.recipes.pictures import drawn_for
from edgewise.recipes.recipe import AnyRun
from edgewise.recipes.registry import recipe
from edgewise.training.parts import Parts


def build(config: AnyRun) -> Parts:
    """The parts of a run in which each robot learns from a replay of what all of them did.

    Raises:
        ConfigError: as the usual builder, or the expert is not among the baselines.
    """
    check_device(config.device)
    made_from, env = recipe(config.recipe), make_worlds(config)
    torch.manual_seed(stream(config.seed, "model"))
    algorithm = algorithm_class(made_from.algorithm)(
        ego_spec(env),
        env.actions,
        config=config.algorithm,
        model=config.model,
        seed=stream(config.seed, "algorithm"),
        device=config.device,
        compile=config.training.compile,
    )
    instances = Instances.of(config)
    return Parts(
        env=env,
        algorithm=algorithm,
        rollout=Rollout(env, collector(config, env, algorithm), steps=config.training.steps),
        evaluate=instances,
        baselines=instances.baselines(config.evaluation.baselines),
        replay=drawn_for(algorithm.policy, instances.env, line=entry(made_from.env)),
    )


def ego_spec(env: GraphEnv[Any]) -> EgoSpec:
    """How much a robot of `env` sees."""
    seen = env.observation_spec.get(EGO, None)
    if seen is None:
        raise ConfigError(
            f"{env.name} does not say what each robot sees by itself",
            hint="use an environment with `agents.ego`, such as marine",
        )
    return EgoSpec.of(seen.zero())


def collector(config: AnyRun, env: GraphEnv[Any], algorithm: OffPolicy[Any]) -> Policy:
    """What leads the worlds: the policy, or it and the expert in turn, by the share of the config."""
    if config.algorithm.expert is None:
        return algorithm.policy
    expert = make_expert(config, env)
    return Mixture(expert, algorithm.policy, expert_share=lambda: algorithm.config.expert_share)
