"""IQN: implicit quantile networks over 25 thrust choices."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "iqn",
    IQNConfig(),
    actions="discrete",
    summary="the boats' curriculum with implicit quantile networks; policies can be risk-averse",
    evaluate_every=300_000,
)
