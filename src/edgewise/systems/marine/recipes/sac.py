"""SAC: soft actor-critic with a learned temperature steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "sac",
    SACConfig(),
    actions="continuous",
    summary="the boats' curriculum with soft actor-critic and a learned temperature",
)
