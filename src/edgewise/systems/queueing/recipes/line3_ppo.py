"""PPO reaches the delay optimum of a line of three links; MaxWeight is a sixth above it."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.models.config import SetModelConfig

RECIPE = Recipe(
    "queueing-line3-ppo",
    "PPO schedules a line of three links with less backlog than MaxWeight, near the exact optimum",
    # Short episodes: early in training the policy is unstable, and resets keep the queues short.
    env=QueueingConfig(
        graphs=("line3",), arrival_rate=0.4, initial_queue=4, max_steps=200, reward_scale=10.0
    ),
    model=SetModelConfig(encoder=EncoderConfig(hidden=32, layers=2), sets="whole"),
    algorithm=PPOConfig(
        gamma=0.99,
        lmbda=0.9,
        epochs=3,
        minibatch_size=1024,
        entropy_coefficient=0.05,
        normalise_value=True,
    ),
    training=TrainingConfig(
        total_frames=450_000,
        num_envs=256,
        rollout_length=32,
        schedules={
            "learning_rate": Linear(start=2e-3, end=1e-4),
            "entropy_coefficient": Linear(start=0.05, end=0.0),
        },
    ),
    evaluation=EvaluationConfig(
        every=100_000,
        episodes=336,
        settings={"initial_queue": 0, "max_steps": 100},
        baselines=("maxweight", "max-departures"),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=100_000),
)
