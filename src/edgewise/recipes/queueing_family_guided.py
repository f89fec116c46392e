"""PPO on small conflict graphs that a rule guides at first, so that it need not find everything by itself."""

from __future__ import annotations

from edgewise.algorithms.config import GuidedPPOConfig
from edgewise.config.run import CheckpointConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.envs.queueing.config import QueueingConfig
from edgewise.models.config import ModelConfig
from edgewise.recipes.queueing_family_ppo import RECIPE as PLAIN
from edgewise.recipes.recipe import Recipe

RECIPE = Recipe(
    name="queueing-family-guided",
    summary="PPO on graphs of up to six links, guided at first by the rule that sends from most queues",
    env="queueing",
    algorithm="guided-ppo",
    builder="edgewise.recipes.guide:build",
    config=RunConfig[QueueingConfig, ModelConfig, GuidedPPOConfig](
        recipe="queueing-family-guided",
        name="queueing-family-guided",
        env=PLAIN.config.env,
        model=PLAIN.config.model,
        # The rule that sends from most queues need not be stable; it is where the search begins.
        algorithm=GuidedPPOConfig(**PLAIN.config.algorithm.to_plain(), expert="max-departures"),
        training=TrainingConfig(
            total_frames=400_000,
            num_envs=256,
            steps=32,
            schedules={
                "learning_rate": Linear(start=2e-3, end=1e-4),
                "entropy_coefficient": Linear(start=0.02, end=0.0),
                "guidance": Linear(start=1.0, end=0.0, frames=200_000),
            },
        ),
        evaluation=PLAIN.config.evaluation.model_copy(update={"every": 100_000}),
        checkpoint=CheckpointConfig(every=100_000),
    ),
)
