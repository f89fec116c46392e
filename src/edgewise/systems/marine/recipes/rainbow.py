"""Rainbow over 25 thrust choices: categorical returns, noisy networks, n-step returns, priorities."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import RainbowConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "rainbow",
    RainbowConfig(v_min=-15.0, v_max=60.0, learning_rate=1e-3, updates_per_transition=0.02),
    actions="discrete",
    summary="all the boats' stages with Rainbow: categorical returns, noise, n steps, priorities",
    total_frames=150_000,
    evaluations=1,
    worlds=50,
)
