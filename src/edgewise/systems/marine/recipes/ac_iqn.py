"""AC-IQN: a deterministic actor with an implicit-quantile critic steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "ac-iqn",
    ACIQNConfig(n_step=2, updates_per_transition=0.02),
    actions="continuous",
    summary="the boats' curriculum with an actor and an implicit-quantile critic",
)
