"""DDPG with the settings of swarm-sac; noise on actions replaces the entropy."""

from __future__ import annotations

from dataclasses import replace

from edgewise.algorithms.off_policy_config import DDPGConfig
from edgewise.config.schedules import Linear
from edgewise.systems.swarm.recipes.sac import RECIPE as SAC

TRAINING = SAC.config.training

RECIPE = replace(
    SAC,
    name="swarm-ddpg",
    summary="three agents with continuous thrust learn to reach their goals among obstacles, by DDPG",
    algorithm=DDPGConfig(
        gamma=0.9,
        n_step=3,
        tau=0.05,
        epsilon=0.0,
        huber_delta=10.0,
        max_grad_norm=10.0,
        minibatch_size=256,
        updates_per_transition=1 / 64,
        learning_starts=3200,
        replay_size=200_000,
    ),
    training=TRAINING.model_copy(
        update={"schedules": {**TRAINING.schedules, "action_noise": Linear(start=0.5, end=0.1)}}
    ),
)
