"""Analytic policy gradients: teams of many sizes learn to reach their goals in about a CPU-minute."""

from __future__ import annotations

from edgewise.algorithms.config import APGConfig
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    RunConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    name="swarm-apg",
    summary="teams of many sizes learn to reach their goals by gradients through the simulation",
    config=RunConfig[SwarmConfig, ModelConfig, APGConfig](
        recipe="swarm-apg",
        env_name="swarm",
        algorithm_name="apg",
        name="swarm-apg",
        # Both parts of the reward have a gradient. A margin below the goal threshold lets agents arrive
        # beside an obstacle.
        env=SwarmConfig(
            num_agents=(3, 16),
            num_obstacles=(0, 10),
            world_size=(0.9, 2.0),
            sensing_radius=0.75,
            one_way=True,
            edge_features="approach",
            goal_reward=0.3,
            goal_width=0.1,
            collision_cost=1.0,
            collision_margin=0.03,
            continuous=True,
            reward="individual",
        ),
        model=ModelConfig(
            encoder=EncoderConfig(hidden=32, layers=1, heads=4, feed_forward=1), initial_std=0.2
        ),
        # A contact is avoided within a second, so windows of ten steps are enough.
        algorithm=APGConfig(horizon=10, updates=10, minibatch_size=32),
        training=TrainingConfig(
            total_frames=20_000,
            num_envs=32,
            rollout_length=25,
            schedules={"learning_rate": Linear(start=2e-3, end=1e-4)},
            # Agents that do not know their goals yet learn from contacts to flee from each other.
            curriculum=(
                Stage(name="goals", env={"collision_cost": 0.0}, until=Until(frames=6_400)),
                Stage(name="contacts"),
            ),
        ),
        evaluation=EvaluationConfig(
            every=10_000,
            episodes=100,
            settings={
                "num_agents": 15,
                "world_size": 2.0,
                "goal_reward": 5.0,
                "goal_width": 0.0,
                "collision_cost": 5.0,
                "collision_margin": 0.0,
            },
            baselines=("straight", "cautious"),
        ),
        checkpoint=CheckpointConfig(every=10_000),
    ),
)
