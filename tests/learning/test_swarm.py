"""swarm-mappo must steer three agents as well as the published system does, in minutes."""

import pytest

from edgewise.recipes.compose import build
from edgewise.recipes.load import load_config
from edgewise.recipes.swarm_mappo import RECIPE

FRAMES = 256_000


@pytest.mark.learning
@pytest.mark.parametrize("seed", [0])
def test_three_agents_reach_their_goals_as_published(seed):
    parts = build(load_config(RECIPE.config, keywords={"seed": seed, "algorithm.learning_rate": 1e-3}))
    for _ in range(FRAMES // parts.rollout.frames):
        parts.algorithm.learn(parts.rollout.collect())
    metrics = {
        name: float(values.mean()) for name, values in parts.evaluate(parts.algorithm.policy).metrics.items()
    }
    assert metrics["success"] >= 0.98
    assert metrics["reward"] >= 60
    assert metrics["time"] <= 0.42
