"""Boats learn two continuous thrusts with entropy that holds itself."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "sac",
    SACConfig(),
    actions="continuous",
    summary="the boats' curriculum by soft actor-critic with a temperature that tunes itself",
)
