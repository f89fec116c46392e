"""SAC with continuous actions: three agents learn in about two CPU-minutes, and their weights steer seven."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import SACConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ValueConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    "swarm-sac",
    "three agents with continuous thrust learn to reach their goals among obstacles, by SAC",
    env=SwarmConfig(continuous=True, one_way=True, reward="individual"),
    # An agent's return depends on what is near it, so values need no pooled graph.
    model=ValueConfig(encoder=EncoderConfig(hidden=32, layers=1, heads=4), hidden=128, pooled=False),
    # The goal is small: returns of three steps and quick target networks spread its reward, and a low
    # entropy lets an agent stay there.
    algorithm=SACConfig(
        gamma=0.9,
        n_step=3,
        tau=0.05,
        target_entropy=-4.0,
        max_grad_norm=10.0,
        minibatch_size=256,
        updates_per_transition=1 / 64,
        learning_starts=3200,
        replay_size=200_000,
    ),
    training=TrainingConfig(
        total_frames=128_000,
        num_envs=128,
        rollout_length=5,
        schedules={"learning_rate": Linear(start=2e-3, end=2e-4)},
    ),
    evaluation=EvaluationConfig(every=32_000, episodes=100, baselines=("random", "straight", "cautious")),
    checkpoint=CheckpointConfig(every=64_000),
)
