"""Dense worlds and a high cost of contacts, so that agents learn to keep clear of each other."""

from __future__ import annotations

from edgewise.algorithms.config import PPOConfig
from edgewise.config.run import (
    CheckpointConfig,
    EvaluationConfig,
    Stage,
    TrainingConfig,
    Until,
)
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.systems.swarm.config import SwarmConfig

RECIPE = Recipe(
    "swarm-mappo-dense",
    "teams in squares of many densities learn to reach their goals without touching each other",
    # Eighteen agents in the smallest square are as dense as fifty in one of side 2. Continuous thrust
    # lets an agent stay at its goal; one of five directions makes it dance around it, into neighbours.
    # A larger radius shows more bodies, and those far away take attention from those that are near.
    env=SwarmConfig(
        num_agents=(3, 24),
        num_obstacles=(0, 5),
        world_size=(1.2, 2.0),
        sensing_radius=0.5,
        one_way=True,
        edge_features="approach",
        collision_cost=25.0,
        continuous=True,
        reward="individual",
    ),
    model=ModelConfig(
        encoder=EncoderConfig(hidden=32, layers=2, heads=4, edge_hidden=32),
        critic="node",
        shared_trunk=True,
    ),
    # A contact is avoided within a few steps, so a short horizon is enough and less noisy. Random thrust
    # makes agents keep more distance than they need and frees those that block each other: no bonus.
    algorithm=PPOConfig(
        gamma=0.95,
        entropy_coefficient=0.0,
        epochs=4,
        minibatch_size=800,
        max_grad_norm=10.0,
        normalise_value=True,
        huber_delta=10.0,
    ),
    training=TrainingConfig(
        total_frames=800_000,
        num_envs=128,
        rollout_length=25,
        schedules={"learning_rate": Linear(start=1.5e-3, end=2e-4)},
        # Agents that do not know their goals yet learn from contacts to flee from each other, and a high
        # cost before they know how to pass each other makes them wait in front of each other.
        curriculum=(
            Stage(
                name="three agents alone",
                env={"num_agents": 3, "num_obstacles": 0, "collision_cost": 15.0},
                until=Until(frames=96_000),
            ),
            Stage(name="dense", env={"collision_cost": 15.0}, until=Until(frames=400_000)),
            Stage(name="careful"),
        ),
    ),
    evaluation=EvaluationConfig(
        every=200_000,
        episodes=100,
        settings={"num_agents": 15, "num_obstacles": [0, 10], "world_size": 2.0},
        baselines=("straight", "cautious"),
    ),
    checkpoint=CheckpointConfig(every=200_000),
)
