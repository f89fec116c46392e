"""Coverage, formation and line: teams learn to take their places, which no agent is told."""

from __future__ import annotations

from edgewise.algorithms.config import APGConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    "swarm-teams",
    "teams learn to cover landmarks, or to stand on a circle or a line, without assigned places",
    # All bodies are sensed: places depend on the whole team. The goal reward is small beside the
    # distance, so that agents on their way count as much as those at their places. A contact costs as
    # many goal rewards as in the task itself.
    env=SwarmConfig(
        task="coverage",
        sensing_radius=4.0,
        one_way=True,
        edge_features="approach",
        goal_reward=0.5,
        goal_width=0.1,
        collision_cost=0.5,
        collision_margin=0.05,
        continuous=True,
        reward="individual",
    ),
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=2, heads=4), initial_std=0.2),
    # Thrust acts on the velocity for about four steps. So few can be differentiated through observations.
    algorithm=APGConfig(horizon=4, updates=24, minibatch_size=32),
    training=TrainingConfig(
        total_frames=128_000,
        num_envs=64,
        rollout_length=25,
        schedules={"learning_rate": Linear(start=4e-3, end=5e-5)},
    ),
    evaluation=EvaluationConfig(
        every=32_000,
        episodes=100,
        settings={
            "goal_reward": 5.0,
            "goal_width": 0.0,
            "collision_cost": 5.0,
            "collision_margin": 0.0,
        },
        baselines=("random", "straight", "cautious"),
    ),
    checkpoint=CheckpointConfig(every=32_000),
)
