"""PPO with self-play on boards of 4 to 11, against its snapshots and baselines too."""

from __future__ import annotations

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hex.config import HexConfig

RECIPE = Recipe(
    "hex-selfplay",
    "PPO plays Hex on boards up to 11 x 11 against itself, its snapshots and two rules",
    # Up to three random stones at the start, so that good and bad openings both occur in training.
    env=HexConfig(size=(5, 11), opening_plies=(0, 3), currents=True, prior="current"),
    model=ModelConfig(
        shared_trunk=True,
        pool="max",
        encoder=EncoderConfig(kind="gnn", conv="SAGEConv", hidden=32, layers=5),
        # The policy begins with a preference for cells that carry current for both players.
        prior=2.0,
    ),
    algorithm=SelfPlayConfig(
        gamma=1.0,
        epochs=2,
        minibatch_size=512,
        max_grad_norm=1.0,
        pool_size=8,
        pool_share=0.125,
        # Self-play alone does not visit the positions that other players lead to.
        baselines=("shortest_way", "most_current"),
        baseline_share=0.25,
    ),
    training=TrainingConfig(
        total_frames=300_000,
        num_envs=128,
        rollout_length=32,
        schedules={
            "learning_rate": Linear(start=2e-3, end=2e-5),
            "entropy_coefficient": Linear(start=0.02, end=0.001),
        },
        curriculum=(
            Stage(name="small boards", env={"size": [4, 7]}, until=Until(frames=150_000)),
            Stage(name="all boards"),
        ),
    ),
    evaluation=EvaluationConfig(
        every=50_000,
        episodes=200,
        settings={"size": 7, "opening_plies": 2},
        baselines=("random", "shortest_way", "most_current"),
    ),
    checkpoint=CheckpointConfig(every=50_000, keep_last=20),
)
