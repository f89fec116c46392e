"""Boats learn whole distributions of returns over a fixed support, with noise and priorities."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "rainbow",
    RainbowConfig(),
    actions="discrete",
    summary="the boats' curriculum by Rainbow: categorical returns, noise, n steps, priorities",
)
