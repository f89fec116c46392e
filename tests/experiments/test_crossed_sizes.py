"""The policy of every recipe is evaluated on smaller and larger instances than it is trained on."""

import numpy as np
import pytest

from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.experiments.recipes import recipe
from edgewise.plugins import recipes

SIZES = {
    "graphwalk": ({"num_nodes": 3}, {"num_nodes": 30}),
    "queueing": ({"graphs": ["line2"]}, {"graphs": ["star9", "line3"]}),
    "multihop": ({"networks": ["two-path"]}, {"networks": ["cross", "diamond"]}),
    "multihop_lengths": ({"networks": ["two-path"]}, {"networks": ["barabasi16", "diamond"]}),
    "reentrant_potentials": ({"networks": ["reentrant2"]}, {"networks": ["re-reentrant7"]}),
    "swarm": ({"num_agents": 1}, {"num_agents": 12}),
    "marine": ({"num_robots": 1}, {"num_robots": 7, "max_robots": 7}),
    "hex": ({"size": 2}, {"size": 8}),
    "hive": ({"hand": "QA"}, {"hand": "QAAGGBS"}),
    "tsp": ({"num_cities": 3}, {"num_cities": 60}),
    "cvrp": ({"num_customers": 3}, {"num_customers": 25}),
    "cvrptw": ({"num_customers": 3}, {"num_customers": 25}),
    "job_shop": ({"num_jobs": 2, "num_machines": 2}, {"num_jobs": 21, "num_machines": 3}),
    "vertex_cover": ({"num_nodes": 5}, {"num_nodes": 30}),
    "max_cut": ({"num_nodes": 6}, {"num_nodes": 110}),
}
"""For each environment, settings of smaller and of larger instances than any of its recipes is trained on."""
SELF_PLAY = ("hex", "hive")
NAMES = [name for name in recipes() if recipe(name).config.env_name in SIZES]


def test_every_environment_with_sizes_is_here():
    others = {recipe(name).config.env_name for name in recipes()} - set(SIZES)
    assert others == {"reasoning"}, "whose size is that of its data"


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_at_other_sizes(name):
    env_name = recipe(name).config.env_name
    own = recipe(name).config
    policy = Builder(own, num_envs=2, rollout_length=1).algorithm.policy
    for size in SIZES[env_name]:
        settings = {**own.evaluation.settings, **size}
        settings |= {"max_steps": 4} if hasattr(own.env, "max_steps") else {}
        changed = {
            "evaluation.settings": settings,
            "evaluation.episodes": 2,
            "evaluation.stages": [],
            "evaluation.baselines": ["random"] if env_name in SELF_PLAY else [],
        }
        found = Builder(load_config(name, keywords=changed)).evaluator(policy)
        assert found.episodes == 2
        assert np.isfinite(found.returns).all()
        assert dict(found.settings).items() >= size.items()
