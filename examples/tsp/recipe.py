"""A recipe in Python, a preset with a name: `edgewise train recipe.py`."""

from tsp import TSPConfig, TSPEnv

import edgewise as ew

ew.register(TSPEnv, name="salesman")

RECIPE = ew.Recipe(
    "tsp-small",
    "ten cities, in two CPU-minutes",
    env=TSPConfig(num_cities=10),
    model=ew.ModelConfig(encoder=ew.EncoderConfig(layers=2)),
    algorithm=ew.PPOConfig(gamma=1.0, lmbda=0.98, learning_rate=1e-3),
    training={"total_frames": 60_000, "num_envs": 100, "rollout_length": 18},
    evaluation={"every": 20_000, "baselines": ["all"]},
)
