"""Replays of problems show the solution that was built."""

import math
from itertools import pairwise

import pytest
import torch
from tensordict import TensorDict

import edgewise as ew
from edgewise.data.random_policy import RandomPolicy
from edgewise.evaluation.replays.files import check
from edgewise.plugins.catalogue import environment

PROBLEMS = {
    "tsp": {"num_cities": (4, 6)},
    "cvrp": {"num_customers": (4, 6), "capacity": 12},
    "cvrptw": {"num_customers": (4, 6)},
    "job_shop": {"num_jobs": (2, 3), "num_machines": (2, 4)},
    "vertex_cover": {"num_nodes": (6, 9)},
    "independent_set": {"num_nodes": (6, 9)},
    "max_cut": {"num_nodes": (6, 9), "signs": True},
    "coloring": {"num_nodes": (6, 9)},
    "immunisation": {"num_nodes": (6, 9)},
}


def played(name, world=2):
    """The states of a random episode of one world, and its replay."""
    env = ew.make_env(name, num_envs=4, seed=5, **PROBLEMS[name])
    policy, root = RandomPolicy(env.actions, env.graph, seed=1), env.new_worlds(4)[world : world + 1]
    states = [root["state"][0]]
    while not root["done"].all():
        root = env.simulate(policy(root))
        states.append(root["state"][0])
    states = TensorDict.stack(states)
    return states, check(environment(name).load("replay")(states))


def final(replay, layer):
    """The fields of a layer in the last frame."""
    shown = dict(next(each for each in replay["layers"] if each["name"] == layer))
    for frame in replay["frames"]:
        shown |= frame.get(layer, {})
    return shown


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_a_frame_for_each_state(name):
    states, replay = played(name)
    assert len(replay["frames"]) == len(states)
    assert all(len(each["values"]) == len(states) for each in replay["series"])


@pytest.mark.parametrize("name", ["tsp", "cvrp", "cvrptw"])
def test_the_ways_that_are_drawn_have_the_length_of_the_solution(name):
    states, replay = played(name)
    ways, places = final(replay, "ways"), final(replay, "places")
    points = list(zip(places["x"], places["y"], strict=True))
    drawn = sum(math.dist(points[a], points[b]) for a, b in zip(ways["source"], ways["target"], strict=True))
    assert drawn == pytest.approx(float(states["length"][-1]), rel=1e-4)
    assert set(places["color"]) == {"ink"}, "every place is served"


def test_bars_of_a_machine_do_not_overlap_and_end_at_the_makespan():
    states, replay = played("job_shop")
    bars = final(replay, "bars")["points"]
    machines = int(states["is_machine"][0].sum())
    assert len(bars) == int(states["is_job"][0].sum()) * machines
    unit = 2.2 * machines / float(states["makespan"][-1])
    assert max(bar[1][0] for bar in bars) == pytest.approx(float(states["makespan"][-1]) * unit, rel=1e-5)
    rows = {}
    for bar in bars:
        rows.setdefault(round(bar[0][1], 2), []).append((bar[0][0], bar[1][0]))
    assert len(rows) == machines
    for spans in rows.values():
        spans.sort()
        assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(spans))


def test_marks_are_those_of_the_last_state():
    states, replay = played("vertex_cover")
    count = int(states["exists"][0].sum())
    chosen = [colour == "accent" for colour in final(replay, "nodes")["color"]]
    assert chosen == states["chosen"][-1, :count].tolist()
    assert replay["facts"]["weight"] == pytest.approx(float(states["weight"][-1][states["chosen"][-1]].sum()))
    states, replay = played("max_cut")
    dark = [colour == "ink" for colour in final(replay, "links")["color"]]
    links = final(replay, "links")
    side = states["side"][-1]
    assert dark == [bool(side[a] != side[b]) for a, b in zip(links["source"], links["target"], strict=True)]
    weight = states["weight"][0]
    crossing = [(a, b) for a, b, cut in zip(links["source"], links["target"], dark, strict=True) if cut]
    assert sum(float(weight[a, b]) for a, b in crossing) == pytest.approx(float(states["cut"][-1]))


def test_neighbours_have_different_colours():
    states, replay = played("coloring")
    links, nodes = final(replay, "links"), final(replay, "nodes")
    assert "faint" not in nodes["color"]
    for a, b in zip(links["source"], links["target"], strict=True):
        assert nodes["color"][a] != nodes["color"][b]
    assert torch.equal(states["colour"][0], torch.full_like(states["colour"][0], -1))
