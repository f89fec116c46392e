"""The double integrator of GCBF+: eight agents learn by gradients through the simulation not to collide."""

from __future__ import annotations

from edgewise.algorithms.config import APGConfig
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
    "swarm-integrator",
    "double integrators learn to reach their goals without touching each other",
    # Both parts of the reward have a gradient. Eight agents in the smaller squares meet as often as a
    # crowd in the square of side 4 in which they are evaluated.
    env=SwarmConfig(
        dynamics="double_integrator",
        num_agents=8,
        num_obstacles=0,
        world_size=(0.8, 3.0),
        max_steps=128,
        sensing_radius=0.5,
        one_way=True,
        edge_features="approach",
        goal_threshold=0.1,
        goal_reward=0.5,
        goal_width=0.1,
        collision_cost=10.0,
        collision_margin=0.06,
        continuous=True,
        reward="individual",
    ),
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=2, heads=4, feed_forward=1), initial_std=0.2),
    # Half a second: agents that approach each other at full speed see each other that long before. The
    # direction to a body that one drives straight at has a gradient without bound, which observations
    # must not pass on.
    algorithm=APGConfig(horizon=16, updates=24, minibatch_size=48, through_observations=False),
    # A rollout is a whole episode: parts of it have agents on their way only, or at their goals only.
    training=TrainingConfig(
        total_frames=280_000,
        num_envs=32,
        rollout_length=128,
        schedules={"learning_rate": Linear(start=1e-3, end=5e-5)},
        # Agents that do not know their goals yet learn from contacts to flee from each other.
        curriculum=(
            Stage(name="goals", env={"collision_cost": 0.0}, until=Until(frames=12_000)),
            Stage(name="contacts", env={"collision_cost": 3.0}, until=Until(frames=28_000)),
            Stage(name="careful"),
        ),
    ),
    evaluation=EvaluationConfig(
        every=40_000,
        episodes=40,
        settings={
            "max_steps": 256,
            "num_agents": 16,
            "world_size": 4.0,
            "goal_width": 0.0,
            "collision_cost": 5.0,
            "collision_margin": 0.0,
        },
        baselines=("straight", "cautious"),
        metric="safe_finish",
    ),
    checkpoint=CheckpointConfig(every=40_000),
)
