"""Double DQN over 25 thrust choices."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.systems.marine.recipes.curriculum import marine_recipe

RECIPE = marine_recipe(
    "dqn",
    DQNConfig(dueling=True, n_step=2),
    actions="discrete",
    summary="the boats' curriculum with double DQN over 25 thrust choices",
    evaluate_every=225_000,
)
