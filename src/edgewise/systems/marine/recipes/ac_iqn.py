"""AC-IQN: a deterministic actor with an implicit-quantile critic steers boats by two continuous thrusts."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import ACIQNConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "ac-iqn",
    ACIQNConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        target_noise=0.1,
        quantiles=4,
        target_quantiles=4,
        risk="cvar",
        risk_alpha=0.4,
    ),
    actions="continuous",
    summary="all the boats' stages with an actor and an implicit-quantile critic",
    exploring=0.6,
)
