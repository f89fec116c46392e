"""PPO learns to prove the region of a country from neighbours and subregions; the data is in the package."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.systems.reasoning.config import ReasoningConfig
from edgewise.systems.reasoning.models.config import ProofConfig

RECIPE = Recipe(
    "reasoning-countries",
    "proofs of the region of a country; for countries_s1, countries_s2 and countries_s3",
    env=ReasoningConfig(
        data="countries_s3",
        view="state",
        max_successors=40,
        max_steps=6,
        limit_fails=True,
        # Test countries have no short proofs, so some training countries must have none either.
        withheld=0.3,
    ),
    model=ProofConfig(hidden=64),
    algorithm=PPOConfig(epochs=4, minibatch_size=512, entropy_coefficient=0.01, gamma=0.99),
    training=TrainingConfig(
        total_frames=60_000,
        num_envs=128,
        rollout_length=16,
        schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
    ),
    evaluation=EvaluationConfig(
        every=20_000,
        episodes=96,
        settings={"split": "valid", "withheld": 0.0},
        baselines=("random", "shortest_goal"),
        metric="correct",
    ),
    checkpoint=CheckpointConfig(every=30_000),
)
