"""Evolution strategies on the lengths by which BackPressure routes, on random networks, for unseen ones."""

from __future__ import annotations

from edgewise.algorithms.config import EvolutionConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.multihop.config import LengthsConfig

RECIPE = Recipe(
    "multihop-lengths",
    "evolution strategies give links the lengths by which BackPressure routes in unseen networks",
    env=LengthsConfig(
        networks=("barabasi10*24", "barabasi12*24", "barabasi14*24"),
        network_load=(0.8, 0.95),
        max_steps=300,
        reward_scale=300.0,
        prior="flow-backpressure",
    ),
    # The first policy is the rule of the prior: a correction of 0.001 changes a length by 1 %.
    model=ModelConfig(
        encoder=EncoderConfig(hidden=16, layers=2, heads=2), head_hidden=(16,), policy_gain=0.001, prior=1.0
    ),
    # A larger sigma moves lengths by factors at once, and the returns of candidates say nothing.
    algorithm=EvolutionConfig(pairs=40, sigma=0.02, learning_rate=0.01),
    training=TrainingConfig(
        total_frames=57_600,
        num_envs=480,
        rollout_length=1,
        schedules={"learning_rate": Linear(start=0.01, end=0.001)},
    ),
    evaluation=EvaluationConfig(
        every=None,
        episodes=32,
        settings={"networks": ["barabasi12*16", "barabasi14*16"], "network_seed": 1, "max_steps": 1000},
        baselines=("length-backpressure", "flow-backpressure"),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=28_800),
)
