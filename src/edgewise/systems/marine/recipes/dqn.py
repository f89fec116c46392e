"""Double DQN over 25 thrust choices."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.systems.marine.recipes.stages import marine_recipe

RECIPE = marine_recipe(
    "dqn",
    DQNConfig(
        dueling=True,
        n_step=5,
        learning_rate=1e-3,
        updates_per_transition=0.02,
        prioritised=True,
        # A loss that is linear from an error of 1 on learns the median of returns, and rare collisions hardly
        # change a median. Squared errors have larger gradients.
        huber_delta=20.0,
        max_grad_norm=100.0,
    ),
    actions="discrete",
    summary="all the boats' stages with double DQN over 25 thrust choices",
    total_frames=250_000,
    evaluations=1,
    worlds=50,
)
