"""Problems: their costs, rules and solutions against independent computations."""

import itertools

import networkx
import numpy
import pytest
import torch

import edgewise as ew
from edgewise.evaluation.evaluate import evaluate
from edgewise.plugins import environments
from edgewise.problems import SYSTEM
from edgewise.problems.immunisation import betweenness_of, influence_of
from edgewise.problems.plane import symmetric
from edgewise.problems.random_graphs import preferential_attachment, small_world

SMALL = {
    "tsp": {"num_cities": (3, 6)},
    "cvrp": {"num_customers": (2, 5)},
    "cvrptw": {"num_customers": (2, 5)},
    "job_shop": {"num_jobs": (2, 3), "num_machines": (2, 3)},
    "vertex_cover": {"num_nodes": (5, 7)},
    "independent_set": {"num_nodes": (5, 7)},
    "max_cut": {"num_nodes": (6, 8)},
    "coloring": {"num_nodes": (5, 7)},
    "immunisation": {"num_nodes": (6, 8)},
}


def played(env, policy, seed=0):
    """Return where one episode of every world starts, its actions and return, and where it ends."""
    env.set_seed(seed)
    root = env.reset()
    start, actions, done = root["state"], [], torch.zeros(env.num_envs, dtype=torch.bool)
    returns, final = torch.zeros(env.num_envs), root.exclude("action")
    while not done.all():
        root = policy(root)
        actions.append(torch.where(done, -1, root["action"]))
        following = env.simulate(root)
        returns += torch.where(done, 0.0, following["reward"].squeeze(-1))
        following = following.exclude("reward")
        final = following.where(~done, final)
        done = done | following["done"].squeeze(-1)
        root = following.where(~done, root.select(*following.keys()))
    return start, torch.stack(actions, 1), returns, final


def test_every_problem_has_small_settings_here():
    assert set(SMALL) == set(SYSTEM.environments)


@pytest.mark.parametrize("name", SMALL)
def test_the_contract_holds(name):
    ew.check_graph_env(ew.make_env(name, num_envs=4, **SMALL[name]))


@pytest.mark.parametrize("name", SMALL)
def test_rules_play_to_the_end(name):
    env = ew.make_env(name, num_envs=16, seed=0, **SMALL[name])
    rules = environments()[name].load_baselines()
    assert len(rules) >= 1
    for rule in rules.values():
        assert evaluate(env, rule(env), episodes=16, seed=1).finished.all()


def test_the_length_of_a_tour():
    env = ew.make_env("tsp", num_envs=32, num_cities=(3, 6))
    start, actions, returns, root = played(env, env.rand_action)
    for world in range(32):
        tour = actions[world][actions[world] >= 0]
        assert sorted(tour.tolist()) == start["exists"][world].nonzero().squeeze(-1).tolist()
        places = start["place"][world, tour].double()
        length = (places - places.roll(-1, 0)).norm(dim=-1).sum()
        assert returns[world] == pytest.approx(-float(length), abs=1e-5)
        assert root["metrics", "tour"][world] == pytest.approx(float(length), abs=1e-5)


def test_two_opt_is_optimal_for_five_cities():
    env = ew.make_env("tsp", num_envs=24, num_cities=5)
    rule = environments()["tsp"].load_baselines()["two_opt"](env)
    start, _, returns, _ = played(env, rule)
    for world in range(24):
        place = start["place"][world].double()
        tours = ([0, *order] for order in itertools.permutations(range(1, 5)))
        lengths = [float((place[list(t)] - place[list(t)].roll(-1, 0)).norm(dim=-1).sum()) for t in tours]
        assert -float(returns[world]) <= min(lengths) * 1.05
        assert -float(returns[world]) >= min(lengths) - 1e-5


@pytest.mark.parametrize("name", ["cvrp", "cvrptw"])
def test_routes_serve_every_customer_within_capacity_and_time(name):
    env = ew.make_env(name, num_envs=32, seed=0, num_customers=(3, 7))
    start, actions, returns, _ = played(env, env.rand_action)
    for world in range(32):
        left, time, here, length = 1.0, 0.0, 0, 0.0
        place = start["place"][world].double()
        for node in actions[world][actions[world] >= 0].tolist():
            way = float((place[node] - place[here]).norm())
            length, time, here = length + way, time + way, node
            left = 1.0 if node == 0 else left - float(start["demand"][world, node])
            assert left >= -1e-5
            if name == "cvrptw" and node:
                assert time <= float(start["closes"][world, node]) + 1e-5
                time = max(time, float(start["opens"][world, node])) + env.config.service
                home = float((place[node] - place[0]).norm())
                assert time + home <= env.config.horizon + 1e-5
            time = 0.0 if node == 0 else time
        served = sorted(node for node in actions[world].tolist() if node > 0)
        assert served == start["exists"][world].nonzero().squeeze(-1).tolist()[1:]
        assert returns[world] == pytest.approx(-length, abs=1e-4)


@pytest.mark.parametrize("active", [True, False])
def test_schedules_respect_jobs_and_machines(active):
    env = ew.make_env("job_shop", num_envs=16, seed=0, num_jobs=(2, 4), num_machines=(2, 3), active=active)
    start, actions, _, root = played(env, env.rand_action)
    for world in range(16):
        step, ready, free = {}, {}, {}
        for job in actions[world][actions[world] >= 0].tolist():
            number = step.get(job, 0)
            machine = int(start["machine"][world, job, number])
            begin = max(ready.get(job, 0.0), free.get(machine, 0.0))
            ready[job] = free[machine] = begin + float(start["duration"][world, job, number])
            step[job] = number + 1
        machines = int(start["is_machine"][world].sum())
        assert step == dict.fromkeys(step, machines)
        assert len(step) == int(start["is_job"][world].sum())
        assert float(root["metrics", "makespan"][world]) == max(ready.values())


def test_active_schedules_include_the_best():
    """Every order of the operations of two jobs on two machines, with and without the restriction."""
    env = ew.make_env("job_shop", num_envs=1, seed=0, num_jobs=2, num_machines=2)
    for seed in range(12):
        env.set_seed(seed)
        start = env.reset()["state"]
        best = {}
        for active in (True, False):
            other = ew.make_env("job_shop", num_envs=1, num_jobs=2, num_machines=2, active=active)
            best[active] = min(_all_makespans(other, other.worlds_in(start)))
        assert best[True] == best[False]


def _all_makespans(env, root):
    if root["done"].all():
        yield float(root["metrics", "makespan"])
        return
    for job in root["action_mask"][0].nonzero().squeeze(-1).tolist():
        yield from _all_makespans(env, env.simulate(root.copy().set("action", torch.tensor([job]))))


def test_covers_cover_and_independent_sets_are_independent():
    for name in ("vertex_cover", "independent_set"):
        env = ew.make_env(name, num_envs=32, seed=0, num_nodes=(5, 9))
        start, actions, returns, _ = played(env, env.rand_action)
        for world in range(32):
            chosen = set(actions[world][actions[world] >= 0].tolist())
            edges = start["adjacent"][world].triu(1).nonzero().tolist()
            if name == "vertex_cover":
                assert all(one in chosen or other in chosen for one, other in edges)
                weight = float(start["weight"][world, list(chosen)].sum())
                assert returns[world] == pytest.approx(-weight, abs=1e-5)
            else:
                assert not any(one in chosen and other in chosen for one, other in edges)
                assert returns[world] == len(chosen)


def test_colours_differ_between_neighbours():
    env = ew.make_env("coloring", num_envs=32, seed=0, num_nodes=(6, 9))
    start, _, returns, root = played(env, env.rand_action)
    colour = root["state", "colour"]
    for world in range(32):
        for one, other in start["adjacent"][world].nonzero().tolist():
            assert colour[world, one] != colour[world, other]
        assert -returns[world] == colour[world].max() + 1


@pytest.mark.parametrize("signs", [True, False])
def test_the_cut_is_the_weight_between_the_sides(signs):
    env = ew.make_env("max_cut", num_envs=16, seed=0, num_nodes=(6, 9), signs=signs)
    root = env.reset()
    for _ in range(6):
        root = env.simulate(env.rand_action(root))
        state = root["state"]
        apart = state["side"].unsqueeze(-1) != state["side"].unsqueeze(-2)
        torch.testing.assert_close(state["cut"], (state["weight"] * apart).sum((1, 2)) / 2)
        gain = (state["weight"] * ~apart).sum(-1) - (state["weight"] * apart).sum(-1)
        torch.testing.assert_close(state["gain"], gain)


def test_symmetries_keep_every_distance_and_differ():
    place = torch.rand(1, 6, 2, generator=torch.Generator().manual_seed(0)).expand(8, -1, -1)
    found = symmetric(place, torch.arange(8))
    torch.testing.assert_close(torch.cdist(found, found), torch.cdist(place, place))
    assert torch.equal(found[0], place[0])
    assert all(not torch.allclose(found[one], found[other]) for one in range(8) for other in range(one))
    assert ((found >= 0) & (found <= 1)).all()


def test_graphs_of_watts_and_strogatz():
    generator = torch.Generator().manual_seed(0)
    size = torch.full((400,), 20)
    found = small_world(size, 24, 4, 0.3, generator)
    assert (found == found.mT).all()
    assert not found.diagonal(0, 1, 2).any()
    assert (found.sum((1, 2)) == 80).all()
    assert not found[:, 20:].any()
    ring = small_world(size[:2], 24, 4, 0.0, generator)[0, :20, :20]
    expected = networkx.to_numpy_array(networkx.watts_strogatz_graph(20, 4, 0.0))
    assert (ring.numpy() == expected).all()
    ours = numpy.mean(
        [networkx.average_clustering(networkx.from_numpy_array(g[:20, :20].numpy())) for g in found]
    )
    theirs = [
        networkx.average_clustering(networkx.watts_strogatz_graph(20, 4, 0.3, seed=s)) for s in range(400)
    ]
    assert abs(ours - numpy.mean(theirs)) < 4 * numpy.std(theirs) * (2 / 400) ** 0.5


def test_graphs_of_barabasi_and_albert():
    found = preferential_attachment(50, 20, 4, torch.Generator().manual_seed(0))
    found = found | found.mT
    assert (found.sum((1, 2)) / 2 == 4 + 15 * 4).all()
    assert not found.diagonal(0, 1, 2).any()


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("tsp", {"num_cities": 1}, "num_cities"),
        ("cvrp", {"num_customers": 0}, "num_customers"),
        ("cvrptw", {"horizon": 3.5}, "horizon"),
        ("job_shop", {"num_jobs": 0}, "num_jobs"),
        ("vertex_cover", {"num_nodes": 4}, "num_nodes"),
        ("vertex_cover", {"neighbours": 3}, "neighbours"),
    ],
)
def test_impossible_settings_are_refused(name, settings, message):
    with pytest.raises(ew.ConfigError, match=message):
        ew.make_env(name, num_envs=1, **settings)


def graphs_left(state):
    """The networkx graph of the nodes left in every world."""
    for world in range(len(state)):
        left = (state["exists"][world] & ~state["chosen"][world]).nonzero().squeeze(-1).tolist()
        yield networkx.from_numpy_array(state["adjacent"][world].numpy()).subgraph(left)


def test_connectivity_is_the_share_of_pairs_that_a_path_joins():
    env = ew.make_env("immunisation", num_envs=16, seed=0, num_nodes=(6, 14), attachment=1, share=0.5)
    start, actions, returns, root = played(env, env.rand_action)
    assert ((actions >= 0).sum(-1) == (0.5 * start["exists"].sum(-1)).ceil()).all()
    for world, graph in enumerate(graphs_left(root["state"])):
        nodes = int(start["exists"][world].sum())
        pairs = sum(len(each) * (len(each) - 1) for each in networkx.connected_components(graph))
        expected = pairs / (nodes * (nodes - 1))
        assert root["metrics", "connected"][world] == pytest.approx(expected)
        assert returns[world] == pytest.approx(1 - expected, abs=1e-5)


def test_rules_of_immunisation_score_nodes_as_networkx_does():
    env = ew.make_env("immunisation", num_envs=8, seed=1, num_nodes=(8, 16))
    root = env.rand_step(env.reset())["next"]
    between = betweenness_of(root["state"])
    for world, graph in enumerate(graphs_left(root["state"])):
        expected = networkx.betweenness_centrality(graph, normalized=False)
        for node, value in expected.items():
            assert between[world, node] == pytest.approx(2 * value, abs=1e-3)
    influence = influence_of(root["state"])
    for world, graph in enumerate(graphs_left(root["state"])):
        for node in graph:
            around = sum(max(graph.degree[other] - 1, 0) for other in graph[node])
            assert influence[world, node] == max(graph.degree[node] - 1, 0) * around
