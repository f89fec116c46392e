"""DAgger on MaxWeight with many small conflict graphs; the policy then schedules larger, unseen ones."""

from __future__ import annotations

from edgewise.algorithms.config import CloneConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.models.config import SetModelConfig

SHAPES = (
    "line3",
    "line4",
    "line5",
    "line6",
    "ring4",
    "ring5",
    "ring6",
    "star4",
    "star5",
    "star6",
    "clique3",
    "grid2x3",
)
FAMILY = (*SHAPES, "geometric5*4", "geometric6*8")
"""Graphs of up to six nodes."""

RECIPE = Recipe(
    "queueing-family-dagger",
    "a graph network imitates MaxWeight on graphs of up to six links and schedules larger ones",
    # A feature that numbers the nodes would not generalise to larger graphs.
    env=QueueingConfig(graphs=FAMILY, load=(0.5, 0.95), initial_queue=8, max_steps=100, node_priority="none"),
    # The best set depends on the whole component; four message-passing layers span most components.
    model=SetModelConfig(encoder=EncoderConfig(hidden=32, layers=4), sets="whole"),
    algorithm=CloneConfig(expert="maxweight", updates=32, minibatch_size=256),
    training=TrainingConfig(
        total_frames=192_000,
        num_envs=256,
        rollout_length=25,
        schedules={
            "expert_share": Linear(start=1.0, end=0.0, frames=64_000),
            "learning_rate": Linear(start=2e-3, end=5e-5),
        },
    ),
    evaluation=EvaluationConfig(
        every=96_000,
        episodes=96,
        settings={"load": 0.8, "initial_queue": 0},
        baselines=("maxweight",),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=64_000),
)
