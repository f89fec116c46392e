"""Expert iteration on boards of 3 and 4, which are solved exactly."""

from __future__ import annotations

from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.hex.config import HexConfig

RECIPE = Recipe(
    "hex-expert",
    "expert iteration plays Hex on 3 x 3 and 4 x 4 from every opening",
    # Random stones at the start, up to a nearly full board: an opponent that plays anything reaches late
    # positions which games of good play never show.
    env=HexConfig(size=(3, 4), opening_plies=(0, 12), distances=True),
    model=ModelConfig(
        shared_trunk=True,
        pool="max",
        encoder=EncoderConfig(kind="gnn", conv="GraphConv", hidden=48, layers=5),
    ),
    algorithm=ExpertIterationConfig(
        simulations=16, considered=8, updates=40, minibatch_size=256, buffer_size=30_000
    ),
    training=TrainingConfig(
        total_frames=250_000,
        num_envs=256,
        rollout_length=8,
        schedules={"learning_rate": Linear(start=2e-3, end=1e-4)},
    ),
    evaluation=EvaluationConfig(
        every=50_000,
        episodes=64,
        settings={"size": 4, "opening_plies": 1},
        baselines=("random", "shortest_way"),
    ),
    checkpoint=CheckpointConfig(every=50_000, keep_last=8),
)
