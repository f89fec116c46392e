"""Puts the parts of a guided run together: PPO in its own worlds, a baseline that says what it would do."""

from __future__ import annotations

from dataclasses import replace

from edgewise.algorithms.guided_ppo import GuidedPPO
from edgewise.data.rollout import Rollout
from edgewise.envs.base import GraphEnv
from edgewise.recipes.compose import build as build_alone
from edgewise.recipes.imitate import make_expert
from edgewise.recipes.recipe import AnyRun
from edgewise.training.parts import Parts


def build(config: AnyRun) -> Parts:
    """The parts of a run of `GuidedPPOConfig`.

    Raises:
        ConfigError: as the usual builder, or the expert is not among the baselines.
    """
    parts = build_alone(config)
    assert isinstance(parts.algorithm, GuidedPPO)
    assert isinstance(parts.rollout, Rollout)
    env, acting = parts.rollout.env, parts.rollout.policy
    assert isinstance(env, GraphEnv)
    parts.algorithm.expert = make_expert(config, env)
    return replace(parts, rollout=Rollout(env, acting, steps=config.training.steps, keep_state=True))
