"""Coverage, formation and line: teams learn to take their places, which no agent is told."""

from __future__ import annotations

from edgewise.algorithms.config import APGConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    name="swarm-teams",
    summary="teams learn to cover landmarks, or to stand on a circle or a line, without assigned places",
    config=RunConfig[SwarmConfig, ModelConfig, APGConfig](
        recipe="swarm-teams",
        env_name="swarm",
        algorithm_name="apg",
        name="swarm-teams",
        env=SwarmConfig(
            task="coverage",
            sensing_radius=4.0,
            edge_features="approach",
            goal_width=0.1,
            collision_margin=0.05,
            continuous=True,
            reward="individual",
        ),
        model=ModelConfig(
            encoder=EncoderConfig(hidden=32, layers=2, heads=4, feed_forward=2), initial_std=0.2
        ),
        algorithm=APGConfig(horizon=8, updates=24, minibatch_size=64, through_observations=False),
        training=TrainingConfig(
            total_frames=160_000,
            num_envs=64,
            rollout_length=25,
            schedules={"learning_rate": Linear(start=2e-3, end=5e-5)},
        ),
        evaluation=EvaluationConfig(
            every=32_000,
            episodes=100,
            settings={"goal_width": 0.0, "collision_margin": 0.0},
            baselines=("random", "straight", "cautious"),
        ),
        checkpoint=CheckpointConfig(every=32_000),
    ),
)
