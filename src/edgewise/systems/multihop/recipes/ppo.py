"""PPO that begins as a pressure rule, on random networks, for unseen ones."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.multihop.config import MultihopConfig

RECIPE = Recipe(
    "multihop-ppo",
    "PPO begins as BackPressure with path lengths on random networks and routes in unseen ones",
    env=MultihopConfig(
        networks=("barabasi10*8", "barabasi12*8"),
        network_load=(0.6, 0.95),
        max_steps=200,
        reward_scale=50.0,
        prior="length-backpressure",
    ),
    # The first policy is the rule of the prior; what is learned is a correction of its scores.
    model=ModelConfig(encoder=EncoderConfig(hidden=16, layers=2), pool="sum", prior=2.0),
    algorithm=PPOConfig(
        gamma=0.98,
        lmbda=0.9,
        epochs=2,
        minibatch_size=256,
        entropy_coefficient=0.0,
        normalise_value=True,
    ),
    training=TrainingConfig(
        total_frames=16_000,
        num_envs=64,
        rollout_length=25,
        schedules={"learning_rate": Linear(start=1e-3, end=1e-4)},
    ),
    evaluation=EvaluationConfig(
        every=None,
        episodes=16,
        settings={"networks": ["barabasi14*16"], "network_seed": 1, "max_steps": 100},
        baselines=("length-backpressure", "spbp", "backpressure"),
        metric="backlog",
        maximise=False,
    ),
    checkpoint=CheckpointConfig(every=16_000),
)
