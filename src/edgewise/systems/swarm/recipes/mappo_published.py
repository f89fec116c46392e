"""InforMARL with its published network, observation, reward and hyper-parameters, for comparison."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import CheckpointConfig, EvaluationConfig, TrainingConfig
from edgewise.experiments.recipe import Recipe
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.models.config import FAITHFUL

RECIPE = Recipe(
    "swarm-mappo-published",
    "InforMARL as published, with GRU and summed neighbours; slower, for comparison",
    env=SwarmConfig(num_agents=3, num_obstacles=3, goal_nodes=True, reward="shared"),
    model=FAITHFUL,
    # Minibatches of 128 agent-steps; chunks of 10 would cross into the next world, so they become 5.
    algorithm=PPOConfig(
        learning_rate=7e-4,
        epochs=10,
        minibatch_size=43,
        chunk_length=10,
        value_coefficient=1.0,
        value_clip=0.2,
        huber_delta=10.0,
        max_grad_norm=10.0,
        normalise_value=True,
    ),
    training=TrainingConfig(total_frames=2_000_000, num_envs=128, rollout_length=25),
    evaluation=EvaluationConfig(every=64_000, episodes=100, baselines=("random", "straight", "cautious")),
    checkpoint=CheckpointConfig(every=128_000),
)
