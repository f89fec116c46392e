"""PPO with self-play learns perfect play on 3 x 3 in about a minute."""

from __future__ import annotations

from edgewise.algorithms.config import SelfPlayConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hex.config import HexConfig

RECIPE = Recipe(
    "hex-quick",
    "PPO plays Hex on 3 x 3 against itself until no opponent can exploit it",
    # Up to four random stones at the start, so that bad openings and replies also occur in training.
    env=HexConfig(size=3, opening_plies=(0, 4), distances=True),
    model=ModelConfig(
        shared_trunk=True,
        pool="max",
        encoder=EncoderConfig(kind="gnn", conv="GraphConv", hidden=32, layers=4),
    ),
    algorithm=SelfPlayConfig(
        gamma=1.0, epochs=3, minibatch_size=256, max_grad_norm=1.0, pool_share=0.0, pool_size=1
    ),
    training=TrainingConfig(
        total_frames=80_000,
        num_envs=128,
        rollout_length=16,
        schedules={
            "learning_rate": Linear(start=2e-3, end=2e-4),
            "entropy_coefficient": Linear(start=0.02, end=0.002),
        },
    ),
    evaluation=EvaluationConfig(
        every=20_000, episodes=64, settings={"opening_plies": 1}, baselines=("random", "shortest_way")
    ),
    checkpoint=CheckpointConfig(every=40_000),
)
