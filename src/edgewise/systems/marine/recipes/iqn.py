"""Boats learn quantiles of their returns for 25 thrust choices."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "iqn",
    IQNConfig(),
    actions="discrete",
    summary="the boats' curriculum by implicit quantile networks, which can act by risk",
)
