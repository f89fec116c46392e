"""PPO learns short walks on random graphs in about a minute: the first recipe to run and to read."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.envs.graphwalk.config import GraphwalkConfig
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.recipes.recipe import Recipe

RECIPE = Recipe(
    name="graphwalk-ppo",
    summary="PPO with a graph transformer finds short walks to a goal on random graphs",
    env="graphwalk",
    algorithm="ppo",
    config=RunConfig[GraphwalkConfig, ModelConfig, PPOConfig](
        recipe="graphwalk-ppo",
        name="graphwalk-ppo",
        env=GraphwalkConfig(),
        model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=3, heads=4)),
        algorithm=PPOConfig(learning_rate=1e-3),
        training=TrainingConfig(
            total_frames=200_000,
            num_envs=64,
            steps=32,
            schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
        ),
        evaluation=EvaluationConfig(every=20_000, episodes=128, baselines=("random",)),
        checkpoint=CheckpointConfig(every=50_000),
    ),
)
