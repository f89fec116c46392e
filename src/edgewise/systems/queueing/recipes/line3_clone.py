"""DAgger on MaxWeight for a line of three links: as good as the expert after about a minute."""

from __future__ import annotations

from edgewise.algorithms.config import CloneConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.models.config import SetModelConfig

RECIPE = Recipe(
    "queueing-line3-clone",
    "a graph network imitates MaxWeight on a line of three links with DAgger and matches it",
    # Initial queues of up to 8 packets cover states that MaxWeight itself rarely visits.
    env=QueueingConfig(graphs=("line3",), arrival_rate=0.4, initial_queue=8, max_steps=200),
    model=SetModelConfig(encoder=EncoderConfig(hidden=32, layers=2), sets="whole"),
    algorithm=CloneConfig(expert="maxweight", updates=64, minibatch_size=512),
    training=TrainingConfig(
        total_frames=64_000,
        num_envs=128,
        rollout_length=50,
        schedules={
            "expert_share": Linear(start=1.0, end=0.0, frames=32_000),
            "learning_rate": Linear(start=3e-3, end=1e-4),
        },
    ),
    evaluation=EvaluationConfig(
        every=None,
        episodes=224,
        settings={"initial_queue": 0, "max_steps": 100},
        baselines=("maxweight",),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=32_000),
)
