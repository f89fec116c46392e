"""Evolution strategies on the potentials by which servers choose, on networks of up to five servers."""

from __future__ import annotations

from edgewise.algorithms.config import EvolutionConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.reentrant.config import PotentialsConfig

SMALL = tuple(f"{family}{servers}" for family in ("reentrant", "re-reentrant") for servers in range(2, 6))
"""Networks of two to five servers."""

RECIPE = Recipe(
    "reentrant-potentials",
    "evolution strategies give queues potentials, on networks of two to five servers, for larger ones",
    # Empty networks would show little of a load of 0.9 in 2,000 events: they begin with some jobs.
    env=PotentialsConfig(networks=SMALL, initial_jobs=1.5, events_per_step=100, max_steps=20),
    # The first policy is root-backpressure, which all potentials equal to zero give.
    model=ModelConfig(
        encoder=EncoderConfig(hidden=16, layers=2, heads=2), head_hidden=(16,), policy_gain=0.001
    ),
    algorithm=EvolutionConfig(pairs=32, sigma=0.02, learning_rate=0.01),
    training=TrainingConfig(
        total_frames=51_200,
        num_envs=512,
        rollout_length=1,
        schedules={"learning_rate": Linear(start=0.01, end=0.001)},
    ),
    evaluation=EvaluationConfig(
        every=None,
        episodes=64,
        settings={
            "networks": ["reentrant6", "re-reentrant6", "reentrant8", "re-reentrant8"],
            "initial_jobs": 0.0,
            "max_steps": 100,
        },
        baselines=("cmu", "maxweight", "root-backpressure"),
        metric="jobs",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=25_600),
)
