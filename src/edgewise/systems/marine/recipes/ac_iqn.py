"""Boats learn two continuous thrusts from a critic of implicit quantiles."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "ac-iqn",
    ACIQNConfig(n_step=2, updates_per_transition=0.02),
    actions="continuous",
    summary="the boats' curriculum by an actor and a critic of implicit quantiles",
)
