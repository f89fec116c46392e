"""SAC: soft actor-critic with a learned temperature steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "sac",
    SACConfig(
        n_step=5, learning_rate=1e-3, updates_per_transition=0.02, prioritised=True, max_grad_norm=100.0
    ),
    actions="continuous",
    summary="all the boats' stages with soft actor-critic and a learned temperature",
)
