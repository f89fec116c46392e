"""Training on a device: nothing mixes devices, and the host waits for it in a few named places only."""

import pytest

from edgewise.config.errors import ConfigError, DataError
from edgewise.experiments.build import Builder
from edgewise.experiments.load import load_config
from edgewise.plugins import recipes

ALLOWED = {
    "objectives/boundaries.py:bootstrap_positions nonzero": "how many next states need a value",
    "training/self_play/rollout.py:_ply _to_copy": "how many rows each opponent plays, once per ply",
    "training/self_play/rollout.py:collect _to_copy": "results of the games, once per batch and opponent",
    "search/tree.py:_select _local_scalar_dense": "whether a path of the search goes on",
    "data/episodes.py:play_episodes _local_scalar_dense": "whether all episodes are over, every few steps",
    "data/instance_batch.py:true_places nonzero": "how many steps were made, once per batch",
    "data/candidates.py:_round _local_scalar_dense": "a seed, once per batch",
    "algorithms/evolution.py:learn _local_scalar_dense": "the seed of the candidates, once per batch",
    "algorithms/evolution.py:candidate_returns _local_scalar_dense": "how many instances, once per batch",
    "models/from_set_head.py:_edge_scores nonzero": "how many actions are legal",
    "systems/hive/baselines.py:policy nonzero": "how many actions are legal, for a rule",
    "data/position_buffer.py:finished _local_scalar_dense": "how many games ended, once per batch",
    "data/transitions.py:stored nonzero": "how many transitions are complete, once per batch",
    "data/replay_buffer.py:extend _local_scalar_dense": "the largest priority, once per batch",
    "systems/queueing/schedulers.py:best nonzero": "labels of the expert, graph by graph",
    "systems/queueing/schedulers.py:best _to_copy": "tables of the expert, graph by graph",
}
"""Where an iteration of training may wait, and for what."""
QUICK = (
    *("graphwalk-ppo", "hex-quick", "marine-iqn", "swarm-mappo-dense", "swarm-sac", "queueing-line3-ppo"),
    *("tsp20-pomo", "cvrp20-pomo", "vertex-cover", "reasoning-countries"),
)
OFF_POLICY = {"learning_starts": 4, "minibatch_size": 8, "updates_per_transition": 0.1, "replay_size": 1000}


def small(name):
    """The recipe, with few and small updates as soon as there is something to learn from."""
    algorithm = load_config(name).algorithm
    few = {"epochs": 2, "updates": 2, "minibatch_size": 8, "pairs": 2, "starts": 2}
    few |= OFF_POLICY if hasattr(algorithm, "learning_starts") else {}
    known = {f"algorithm.{field}": value for field, value in few.items() if hasattr(algorithm, field)}
    return load_config(name, keywords=known)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in recipes()]
)
def test_a_recipe_waits_where_it_may(simulated_device, monkeypatch, name):
    if load_config(name).model.model_dump().get("recurrent"):
        pytest.skip("a fused recurrent cell has kernels on real devices only")
    monkeypatch.setattr("edgewise.experiments.build.check_device", lambda _: None)
    try:
        config = small(name).model_copy(update={"device": str(simulated_device.device)})
        parts = Builder(config, num_envs=4, rollout_length=4, episodes=4).parts()
    except (ConfigError, DataError) as error:
        pytest.skip(f"{name} needs data that is not here: {error.message}")
    parts.algorithm.learn(parts.rollout.collect())
    with simulated_device.recorded() as waits:
        batch = parts.rollout.collect()
        metrics = parts.algorithm.learn(batch)
    assert {value.device for value in batch.values(True, True)} == {simulated_device.device}
    assert all(value.isfinite().all() for value in metrics.values())
    assert {place: count for place, count in waits.items() if place not in ALLOWED} == {}
