"""DDPG: a deterministic policy gradient steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "ddpg",
    DDPGConfig(n_step=3, tau=0.02, actor_share=0.2, target_noise=0.2),
    actions="continuous",
    summary="the boats' curriculum with deterministic policy gradients",
    evaluate_every=150_000,
)
