"""Expert iteration on a hand of seven tiles, with which many games are decided."""

from __future__ import annotations

from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, RunConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hive.config import HiveConfig

RECIPE = Recipe(
    name="hive-expert",
    summary="expert iteration plays Hive with a queen, three ants, two grasshoppers and a beetle each",
    config=RunConfig[HiveConfig, ModelConfig, ExpertIterationConfig](
        recipe="hive-expert",
        env_name="hive",
        algorithm_name="expert_iteration",
        name="hive-expert",
        # Random opening plies, so that good and bad openings both occur in training. Almost no game of a
        # beginner is decided, so hexes around queens count in every ply; in evaluation only wins do.
        env=HiveConfig(hand="QAAAGGB", max_steps=40, shaping=0.5, opening_plies=(0, 12), prior="pressure"),
        model=ModelConfig(
            shared_trunk=True,
            # Sums over neighbours count the tiles around a queen, which attention averages.
            encoder=EncoderConfig(kind="gnn", conv="GINEConv", hidden=32, layers=3),
            # The policy begins with a preference for moves that fill hexes around the opponent's queen.
            prior=2.0,
        ),
        algorithm=ExpertIterationConfig(
            simulations=8, considered=8, updates=32, minibatch_size=256, buffer_size=40_000, search_share=0.25
        ),
        training=TrainingConfig(
            total_frames=120_000,
            num_envs=256,
            rollout_length=8,
            schedules={"learning_rate": Linear(start=2e-3, end=1e-4)},
        ),
        evaluation=EvaluationConfig(
            every=60_000,
            episodes=64,
            settings={"opening_plies": 4, "max_steps": 100, "shaping": 0.0},
            baselines=("random", "greedy"),
        ),
        checkpoint=CheckpointConfig(every=20_000, keep_last=8),
    ),
)
