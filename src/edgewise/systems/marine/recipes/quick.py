"""Dueling DQN with two-step returns for three boats; trains in about two minutes on one core."""

from __future__ import annotations

from edgewise.algorithms.off_policy_config import DQNConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.systems.marine.config import MarineConfig
from edgewise.systems.marine.models.config import MarineEgoConfig

RECIPE = Recipe(
    "marine-quick",
    "three boats learn to reach their goals without collisions, in about two minutes",
    env=MarineConfig(
        num_robots=3, min_start_goal_dis=30.0, max_steps=300, actions="discrete", graph_edges=False
    ),
    model=MarineEgoConfig(),
    # Values are means of returns by squared errors, see marine-dqn.
    algorithm=DQNConfig(dueling=True, n_step=2, replay_size=500_000, huber_delta=20.0, max_grad_norm=100.0),
    training=TrainingConfig(
        total_frames=300_000,
        num_envs=128,
        rollout_length=8,
        schedules={
            "epsilon": Linear(start=0.6, end=0.03, frames=100_000),
            "learning_rate": Linear(start=1e-3, end=1e-4),
        },
    ),
    evaluation=EvaluationConfig(
        every=75_000, episodes=100, settings={"end_at_first_collision": True}, metric="success"
    ),
    checkpoint=CheckpointConfig(every=150_000, keep_last=2),
)
