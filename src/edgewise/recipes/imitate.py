"""Puts the parts of an imitation run together: an expert that labels and leads, an actor that follows."""

from __future__ import annotations

from typing import Any

import torch

from edgewise.algorithms.clone import Clone, Expert
from edgewise.config.errors import ConfigError
from edgewise.data.demonstrations import Mixture
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import entry
from edgewise.models.actor_critic import make_actor_critic
from edgewise.recipes.compose import Instances, check_device, make_worlds, stream
from edgewise.recipes.recipe import AnyRun
from edgewise.recipes.registry import recipe
from edgewise.training.parts import Parts


def build(config: AnyRun) -> Parts:
    """The parts of a run in which a baseline of the environment is imitated.

    Raises:
        ConfigError: as the usual builder, or the expert is not among the baselines.
    """
    check_device(config.device)
    env = make_worlds(config)
    torch.manual_seed(stream(config.seed, "model"))
    algorithm = Clone(
        make_actor_critic(env.graph, env.actions, config.model),
        config.algorithm,
        expert=make_expert(config, env),
        seed=stream(config.seed, "algorithm"),
        device=config.device,
        compile=config.training.compile,
    )
    mixture = Mixture(algorithm.expert, algorithm.policy, expert_share=algorithm.expert_share)
    instances = Instances.of(config)
    return Parts(
        env=env,
        algorithm=algorithm,
        rollout=Rollout(env, mixture, steps=config.training.steps, keep_state=True),
        evaluate=instances,
        baselines=instances.baselines(config.evaluation.baselines),
        replay=entry(recipe(config.recipe).env).replay(),
    )


def make_expert(config: AnyRun, env: GraphEnv[Any]) -> Expert:
    """The baseline that `algorithm.expert` names."""
    known, name = entry(recipe(config.recipe).env).baselines(), config.algorithm.expert
    if name not in known:
        raise ConfigError(
            f"algorithm.expert: got {name}, which is no baseline of {env.name}",
            hint=f"it has {', '.join(sorted(known))}",
        )
    return known[name](env)
