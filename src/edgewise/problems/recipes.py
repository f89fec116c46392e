"""Recipes of the problems. Never imports torch."""

from __future__ import annotations

from edgewise.algorithms.config import ReinforceConfig
from edgewise.config.run import EvaluationConfig, LoggingConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.problems.config import TSPConfig

TSP20_POMO = Recipe(
    "tsp20-pomo",
    "POMO for 20 cities: every instance is encoded once, and tours begin at ten cities",
    env=TSPConfig(num_cities=20),
    model=ModelConfig(encoder=EncoderConfig(hidden=64, layers=2, feed_forward=4)),
    algorithm=ReinforceConfig(starts=10, first_actions="different", minibatch_size=16_384),
    training=TrainingConfig(
        total_frames=2_000_000,
        num_envs=640,
        rollout_length=1,
        schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
    ),
    evaluation=EvaluationConfig(every=500_000, episodes=256, baselines=("nearest", "two_opt")),
    logging=LoggingConfig(replays=0),
)
