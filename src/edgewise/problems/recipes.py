"""Recipes of the problems. Never imports torch."""

from __future__ import annotations

from dataclasses import replace

from edgewise.algorithms.config import PPOConfig, ReinforceConfig
from edgewise.config.run import EvaluationConfig, TrainingConfig
from edgewise.config.schedules import Linear
from edgewise.experiments.recipe import Recipe
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.problems.config import (
    CVRPConfig,
    CVRPTWConfig,
    JobShopConfig,
    MaxCutConfig,
    TSPConfig,
    VertexCoverConfig,
)

FALLING = {"learning_rate": Linear(start=1e-3, end=0.0)}

TSP20_POMO = Recipe(
    "tsp20-pomo",
    "POMO for 20 cities: every instance is encoded once, and tours begin at ten cities",
    env=TSPConfig(num_cities=20),
    model=ModelConfig(encoder=EncoderConfig(hidden=64, layers=2, feed_forward=4, norm="instance")),
    algorithm=ReinforceConfig(starts=10, first_actions="different", minibatch_size=16_384),
    training=TrainingConfig(total_frames=20_000_000, num_envs=640, rollout_length=1, schedules=FALLING),
    evaluation=EvaluationConfig(every=5_000_000, episodes=256, baselines=("nearest", "two_opt")),
)

TSP50_POMO = replace(
    TSP20_POMO,
    name="tsp50-pomo",
    summary="POMO for 50 cities",
    env=TSPConfig(num_cities=50),
    training=TrainingConfig(total_frames=50_000_000, num_envs=640, rollout_length=1, schedules=FALLING),
)

CVRP20_POMO = replace(
    TSP20_POMO,
    name="cvrp20-pomo",
    summary="POMO for routes of a vehicle with a capacity to 20 customers",
    env=CVRPConfig(num_customers=20),
    evaluation=EvaluationConfig(every=5_000_000, episodes=256, baselines=("nearest", "sweep")),
)

CVRPTW20_POMO = replace(
    CVRP20_POMO,
    name="cvrptw20-pomo",
    summary="POMO for routes to 20 customers with time windows",
    env=CVRPTWConfig(num_customers=20),
    evaluation=EvaluationConfig(
        every=5_000_000, episodes=256, baselines=("nearest_in_time", "earliest_close")
    ),
)

VERTEX_COVER = Recipe(
    "vertex-cover",
    "weighted vertex cover on small worlds of 5 to 15 nodes, evaluated on 20",
    env=VertexCoverConfig(num_nodes=(5, 15)),
    model=ModelConfig(encoder=EncoderConfig(hidden=64, layers=3, feed_forward=2)),
    algorithm=ReinforceConfig(starts=8, minibatch_size=16_384),
    training=TrainingConfig(total_frames=4_000_000, num_envs=512, rollout_length=1, schedules=FALLING),
    evaluation=EvaluationConfig(
        every=1_000_000, episodes=256, baselines=("cheapest", "largest"), settings={"num_nodes": 20}
    ),
)

JOB_SHOP = Recipe(
    "job-shop",
    "job shops of many sizes, learned from the best of 32 sampled schedules of each",
    env=JobShopConfig(num_jobs=(6, 20), num_machines=(4, 10)),
    model=ModelConfig(encoder=EncoderConfig(hidden=64, layers=3, feed_forward=2)),
    algorithm=ReinforceConfig(credit="best", baseline="mean", starts=32, minibatch_size=16_384),
    training=TrainingConfig(
        total_frames=10_000_000,
        num_envs=256,
        rollout_length=1,
        schedules={"learning_rate": Linear(start=2e-3, end=0.0)},
    ),
    evaluation=EvaluationConfig(
        every=2_500_000,
        episodes=64,
        baselines=("most_work_remaining", "first_come"),
        settings={"num_jobs": 15, "num_machines": 15},
    ),
)

MAX_CUT = Recipe(
    "max-cut",
    "max-cut by flipping nodes, trained on graphs of 40 to 100 nodes",
    env=MaxCutConfig(num_nodes=(40, 100)),
    model=ModelConfig(encoder=EncoderConfig(hidden=32, layers=2)),
    algorithm=PPOConfig(
        gamma=0.95, lmbda=0.9, learning_rate=1e-3, minibatch_size=2_048, normalise_value=True
    ),
    training=TrainingConfig(
        total_frames=300_000,
        num_envs=32,
        rollout_length=1,
        schedules={"learning_rate": Linear(start=1e-3, end=0.0)},
    ),
    evaluation=EvaluationConfig(every=100_000, episodes=32, baselines=("steepest", "tabu")),
)
