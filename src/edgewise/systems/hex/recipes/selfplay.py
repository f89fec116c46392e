"""PPO with self-play on boards of 5 to 7; the same weights also play larger boards."""

from __future__ import annotations

from edgewise.algorithms.config import SelfPlayConfig
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
from edgewise.systems.hex.config import HexConfig

RECIPE = Recipe(
    name="hex-selfplay",
    summary="PPO plays Hex on 5 x 5 to 7 x 7 against itself and its snapshots",
    config=RunConfig[HexConfig, ModelConfig, SelfPlayConfig](
        recipe="hex-selfplay",
        env_name="hex",
        algorithm_name="ppo",
        name="hex-selfplay",
        # Up to three random stones at the start, so that good and bad openings both occur in training.
        env=HexConfig(size=(5, 7), opening_plies=(0, 3), distances=True),
        model=ModelConfig(
            shared_trunk=True,
            pool="max",
            encoder=EncoderConfig(kind="gnn", conv="SAGEConv", hidden=32, layers=5),
        ),
        algorithm=SelfPlayConfig(
            gamma=1.0, epochs=2, minibatch_size=512, max_grad_norm=1.0, pool_size=16, snapshot_every=12
        ),
        training=TrainingConfig(
            total_frames=700_000,
            num_envs=128,
            rollout_length=32,
            schedules={
                "learning_rate": Linear(start=2e-3, end=1e-4),
                "entropy_coefficient": Linear(start=0.02, end=0.003),
            },
            curriculum=(
                Stage(name="small boards", env={"size": [3, 5]}, until=Until(frames=60_000)),
                Stage(name="all boards"),
            ),
        ),
        evaluation=EvaluationConfig(
            every=50_000,
            episodes=200,
            settings={"size": 7, "opening_plies": 2},
            baselines=("random", "shortest_way"),
        ),
        checkpoint=CheckpointConfig(every=50_000, keep_last=20),
    ),
)
