"""DDPG: a deterministic policy gradient steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "ddpg",
    DDPGConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        target_noise=0.1,
        huber_delta=20.0,
        max_grad_norm=100.0,
    ),
    actions="continuous",
    summary="all the boats' stages with deterministic policy gradients",
    exploring=0.375,
)
