"""PPO learns to prove family relations, two steps deep, and to tell what cannot be proved."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.envs.reasoning.config import ReasoningConfig
from edgewise.models.config import ProofConfig
from edgewise.recipes.recipe import Recipe

RECIPE = Recipe(
    name="reasoning-family",
    summary="proofs of family relations from eighty-odd rules; give the folder as --env.data",
    env="reasoning",
    algorithm="ppo",
    config=RunConfig[ReasoningConfig, ProofConfig, PPOConfig](
        recipe="reasoning-family",
        name="reasoning-family",
        env=ReasoningConfig(
            data="data/family",
            view="state",
            max_successors=130,
            max_steps=4,
            limit_fails=True,
            corrupt="both",
        ),
        model=ProofConfig(hidden=32, rounds=1),
        algorithm=PPOConfig(epochs=2, minibatch_size=1024, entropy_coefficient=0.01, gamma=0.99),
        training=TrainingConfig(
            total_frames=80_000,
            num_envs=256,
            steps=8,
            schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
        ),
        evaluation=EvaluationConfig(
            every=20_000,
            episodes=256,
            settings={"split": "valid"},
            baselines=("random", "shortest_goal"),
            metric="correct",
        ),
        checkpoint=CheckpointConfig(every=40_000),
    ),
    builder="edgewise.recipes.proofs:build",
)
