"""DAgger on biased BackPressure for small networks: as good as the expert after a minute or two."""

from __future__ import annotations

from edgewise.algorithms.config import CloneConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.multihop.config import MultihopConfig

RECIPE = Recipe(
    "multihop-clone",
    "a graph network imitates biased BackPressure on small networks with DAgger and matches it",
    env=MultihopConfig(networks=("cross", "diamond", "two-path"), max_steps=200),
    # Whether a link should carry a class depends only on its two ends; two layers are enough.
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=2)),
    algorithm=CloneConfig(expert="spbp", updates=64, minibatch_size=128),
    training=TrainingConfig(
        total_frames=32_000,
        num_envs=64,
        rollout_length=50,
        schedules={
            "expert_share": Linear(start=1.0, end=0.0, frames=16_000),
            "learning_rate": Linear(start=3e-3, end=1e-4),
        },
    ),
    evaluation=EvaluationConfig(
        every=32_000,
        episodes=64,
        settings={"max_steps": 100},
        baselines=("spbp", "backpressure"),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=16_000),
)
