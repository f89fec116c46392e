"""MAPPO with parameter sharing trains three agents; the same weights then steer teams of fifty."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    "swarm-mappo",
    "three agents learn to reach their goals among obstacles; the weights also steer larger teams",
    # Individual rewards do not depend on the size of the team.
    env=SwarmConfig(num_agents=3, num_obstacles=3, reward="individual"),
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=2, heads=4), critic="node", shared_trunk=True),
    algorithm=PPOConfig(
        epochs=4, minibatch_size=1600, max_grad_norm=10.0, normalise_value=True, huber_delta=10.0
    ),
    training=TrainingConfig(
        total_frames=384_000,
        num_envs=256,
        rollout_length=25,
        schedules={"learning_rate": Linear(start=1.5e-3, end=3e-4)},
    ),
    evaluation=EvaluationConfig(every=64_000, episodes=100, baselines=("random", "straight", "cautious")),
    checkpoint=CheckpointConfig(every=128_000),
)
