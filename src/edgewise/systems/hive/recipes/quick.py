"""PPO with self-play on the base game without spiders, against baselines too."""

from __future__ import annotations

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hive.config import HiveConfig

RECIPE = Recipe(
    "hive-quick",
    "PPO plays Hive without spiders against itself, its snapshots, random and greedy players",
    # Random opening plies, so that good and bad openings both occur in training. Almost no game of a
    # beginner is decided, so hexes around queens count in every ply; in evaluation only wins do.
    env=HiveConfig(hand="QAAAGGGBB", max_steps=80, shaping=0.5, opening_plies=(0, 12), prior="pressure"),
    model=ModelConfig(
        shared_trunk=True,
        # Sums over neighbours count the tiles around a queen, which attention averages.
        encoder=EncoderConfig(kind="gnn", conv="GINEConv", hidden=32, layers=3),
        # The policy begins with a preference for moves that fill hexes around the opponent's queen.
        prior=2.0,
    ),
    algorithm=SelfPlayConfig(
        gamma=0.98,
        lmbda=0.9,
        epochs=2,
        minibatch_size=512,
        max_grad_norm=1.0,
        pool_share=0.125,
        # Games against players that do not learn are decided from the beginning.
        baselines=("random", "greedy"),
        baseline_share=0.5,
    ),
    training=TrainingConfig(
        total_frames=400_000,
        num_envs=256,
        rollout_length=16,
        schedules={
            "learning_rate": Linear(start=1e-3, end=1e-4),
            "entropy_coefficient": Linear(start=0.02, end=0.003),
        },
    ),
    evaluation=EvaluationConfig(
        every=100_000,
        episodes=64,
        settings={"opening_plies": 4, "max_steps": 100, "shaping": 0.0},
        baselines=("random", "greedy"),
    ),
    checkpoint=CheckpointConfig(every=100_000),
)
