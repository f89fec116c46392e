"""PPO with self-play on a small hand: a queen, two ants, a grasshopper and a beetle each."""

from __future__ import annotations

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hive.config import HiveConfig

RECIPE = Recipe(
    name="hive-quick",
    summary="PPO plays Hive with five tiles each against itself and its snapshots",
    config=RunConfig[HiveConfig, ModelConfig, SelfPlayConfig](
        recipe="hive-quick",
        env_name="hive",
        algorithm_name="ppo",
        name="hive-quick",
        # Random opening plies, so that good and bad openings both occur in training.
        env=HiveConfig(hand="QAAGB", max_steps=60, opening_plies=(0, 6)),
        model=ModelConfig(
            shared_trunk=True,
            pool="max",
            encoder=EncoderConfig(kind="gnn", conv="GATv2Conv", hidden=32, layers=3, heads=4),
        ),
        algorithm=SelfPlayConfig(
            gamma=1.0, epochs=2, minibatch_size=512, max_grad_norm=1.0, pool_size=8, snapshot_every=10
        ),
        training=TrainingConfig(
            total_frames=300_000,
            num_envs=128,
            rollout_length=32,
            schedules={
                "learning_rate": Linear(start=1e-3, end=1e-4),
                "entropy_coefficient": Linear(start=0.02, end=0.003),
            },
        ),
        evaluation=EvaluationConfig(
            every=50_000, episodes=64, settings={"opening_plies": 4}, baselines=("random", "greedy")
        ),
        checkpoint=CheckpointConfig(every=100_000),
    ),
)
