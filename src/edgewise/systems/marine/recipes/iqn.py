"""IQN: implicit quantile networks over 25 thrust choices."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import IQNConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "iqn",
    IQNConfig(
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        quantiles=4,
        target_quantiles=4,
        exploring_quantiles=4,
        acting_quantiles=8,
        risk="cvar",
        risk_alpha=0.5,
    ),
    actions="discrete",
    summary="all the boats' stages with implicit quantile networks; policies can be risk-averse",
    evaluations=1,
    worlds=50,
)
