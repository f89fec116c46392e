"""PPO learns shortest paths on random graphs in about a minute: the first recipe to run and to read."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    LoggingConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.graphwalk.config import GraphwalkConfig

RECIPE = Recipe(
    "graphwalk-ppo",
    "PPO with a graph transformer finds shortest walks on random graphs of 8 to 20 nodes",
    env=GraphwalkConfig(num_nodes=(8, 20), extra_edges=3),
    # Four layers of message passing carry the goal over four edges, farther than most starts are from it.
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=4)),
    algorithm=PPOConfig(epochs=3),
    training=TrainingConfig(
        total_frames=32_000,
        num_envs=32,
        rollout_length=32,
        schedules={"learning_rate": Linear(start=3e-4, end=1e-4)},
        curriculum=(
            Stage(
                name="small graphs",
                env={"num_nodes": [4, 8]},
                until=Until(frames=10_000, metric="episode/efficiency", at_least=0.8),
            ),
            Stage(name="all graphs"),
        ),
    ),
    evaluation=EvaluationConfig(every=4_000, episodes=128, baselines=("random", "shortest_path")),
    checkpoint=CheckpointConfig(every=10_000),
    logging=LoggingConfig(replays=2),
)
