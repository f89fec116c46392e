"""Sensor placement on small networks: the contract, the reach against networkx, and what greedy covers."""

import networkx
import pytest
import torch
from torchrl.envs.utils import check_env_specs

import edgewise as ew
from edgewise.plugins import use_plugin

SMALL = {"num_junctions": 60, "num_sensors": 5, "num_networks": 2, "junctions_per_town": 20}


@pytest.fixture
def sensors(examples):
    return use_plugin(str(examples / "sensors/sensors.py"))


def covered_by(sensors, name, **settings):
    env = ew.make_env(sensors.SensorsEnv, num_envs=8, seed=3, **{**SMALL, **settings})
    policy, root = sensors.BASELINES[name](env), env.reset()
    while not root["done"].all():
        root = env.step(policy(root))["next"]
    return root["metrics", "covered"]


def test_contract(sensors):
    env = ew.make_env(sensors.SensorsEnv, num_envs=3, seed=0, **SMALL)
    ew.check_graph_env(env)
    check_env_specs(env)


def test_the_reach_is_two_roads(sensors):
    place = sensors.sample_places(60, seed=1)
    roads = sensors.build_roads(place)
    graph = networkx.DiGraph(list(map(tuple, roads.T.tolist())))
    assert min(degree for _, degree in graph.out_degree) >= 3
    assert graph.to_undirected().number_of_edges() * 2 == roads.shape[1]
    for node, row in enumerate(sensors.reachable(roads, 60).tolist()):
        assert {each for each in row if each < 60} == set(networkx.ego_graph(graph, node, radius=2))


def test_covering_everything_pays_all_traffic(sensors):
    covered = covered_by(sensors, "greedy", num_sensors=60)
    torch.testing.assert_close(covered, torch.full_like(covered, 60 / sensors.TYPICAL_REACH))


def test_greedy_covers_at_least_what_the_busiest_junctions_do(sensors):
    assert covered_by(sensors, "greedy").mean() > covered_by(sensors, "busiest").mean()


@pytest.mark.parametrize(
    ("settings", "field"), [({"num_junctions": 3}, "num_junctions"), ({"num_sensors": 61}, "num_sensors")]
)
def test_settings_that_no_network_can_have(sensors, settings, field):
    with pytest.raises(ew.ConfigError, match=field):
        ew.make_env(sensors.SensorsEnv, num_envs=1, **{**SMALL, **settings})


def test_a_policy_of_one_size_acts_in_another(sensors, small, tmp_path):
    run = ew.train(sensors.SensorsEnv, folder=tmp_path / "run", progress=False, **SMALL, **small)
    found = run.evaluate(episodes=2, num_junctions=90, baselines=["greedy"])
    assert found.metrics["covered"].shape == (2,)
