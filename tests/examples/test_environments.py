"""The environments of the examples keep the contract, and their policies take graphs of other libraries."""

import networkx
import pytest
import torch
from torchrl.envs.utils import check_env_specs

import edgewise as ew
from edgewise.graphs.convert import to_networkx

FILES = {
    "tsp": "tsp/tsp.py",
    "outbreak": "outbreak/outbreak.py",
    "cover": "team/cover.py",
}


@pytest.mark.parametrize("name", FILES)
def test_contract(examples, name):
    env = ew.make_env(str(examples / FILES[name]), num_envs=3, seed=0)
    assert env.name == name
    ew.check_graph_env(env)
    check_env_specs(env)


@pytest.mark.parametrize("name", FILES)
def test_a_trained_policy_takes_graphs_of_pyg_and_networkx(examples, name, small, tmp_path):
    run = ew.train(str(examples / FILES[name]), folder=tmp_path / "run", progress=False, **small)
    policy = run.policy()
    env = ew.make_env(type(policy.env), num_envs=2, seed=3)
    root = env.reset()
    action = policy.act(root)
    assert env.actions.is_legal(action, root, env.graph).all()
    for number in range(2):
        data = ew.to_pyg(root["graph"], env.graph)[number]
        graph = to_networkx(root["graph"], env.graph)[number]
        if root.get("action_mask", None) is not None:
            data.action_mask = root["action_mask"][number, : data.num_nodes]
            networkx.set_node_attributes(graph, dict(enumerate(data.action_mask.tolist())), "action_mask")
        for given in (root[number], data, graph):
            torch.testing.assert_close(policy.act(given), action[number])


def tours(env, name):
    """Play a baseline of the travelling salesman; return tours and their lengths."""
    policy, root, chosen = env.baselines[name](env), env.reset(), []
    while not root["done"].all():
        root = policy(root)
        chosen.append(root["action"].clone())
        root = env.step(root)["next"]
    return torch.stack(chosen, -1), root["metrics", "tour"]


@pytest.fixture
def salesman(examples):
    from edgewise.plugins import use_plugin

    module = use_plugin(str(examples / "tsp/tsp.py"))

    def make(**settings):
        env = ew.make_env(module.TSPEnv, num_envs=16, seed=5, **settings)
        env.baselines = module.BASELINES
        return env

    return make


def test_a_planned_tour_visits_every_city_once(salesman):
    chosen, _ = tours(salesman(num_cities=9), "two_opt")
    assert torch.equal(chosen.sort(-1).values, torch.arange(1, 9).expand(16, -1))


def test_two_opt_is_never_longer_than_the_nearest_neighbour(salesman):
    env = salesman(num_cities=30)
    lengths = {}
    for name in ("nearest", "two_opt"):
        env.set_seed(7)
        lengths[name] = tours(env, name)[1]
    assert (lengths["two_opt"] <= lengths["nearest"] + 1e-5).all()
    assert lengths["two_opt"].mean() < 0.92 * lengths["nearest"].mean()


def test_two_opt_plans_again_for_new_worlds(salesman):
    env = salesman(num_cities=(4, 9))
    policy, root = env.baselines["two_opt"](env), env.reset()
    for _ in range(40):
        root = policy(root)
        assert env.actions.is_legal(root["action"], root, env.graph).all()
        _, root = env.step_and_maybe_reset(root)


def test_the_first_city_may_be_chosen_and_does_not_change_the_round_trip(salesman):
    """The same cyclic order from every first city has the same length, also where it starts at city 0."""
    chosen, fixed = salesman(num_cities=6, choose_first=True), salesman(num_cities=6)
    order = torch.tensor([0, 3, 1, 5, 2, 4])
    lengths = []
    for env, begin in ((fixed, None), *((chosen, begin) for begin in range(6))):
        env.set_seed(3)
        root, total = env.reset(), torch.zeros(16, 1)
        for city in order[1:] if begin is None else order.roll(-begin):
            root = env.step(root.set("action", city.expand(16)))["next"]
            total += root["reward"]
        assert root["terminated"].all()
        torch.testing.assert_close(-total.squeeze(-1), root["metrics", "tour"])
        lengths.append(root["metrics", "tour"])
    torch.testing.assert_close(torch.stack(lengths), lengths[0].expand(7, -1))
    ew.check_graph_env(chosen)


def test_baselines_plan_the_same_tours_where_the_first_city_is_chosen(salesman):
    for name in ("nearest", "two_opt"):
        found = []
        for env in (salesman(num_cities=8), salesman(num_cities=8, choose_first=True)):
            env.set_seed(4)
            found.append(tours(env, name)[1])
        torch.testing.assert_close(*found)


def test_too_few_cities_are_refused_in_words(salesman):
    with pytest.raises(ew.ConfigError, match="num_cities: got 1, expected 2 or more"):
        salesman(num_cities=1)


def test_a_team_that_follows_pairs_covers_everything(examples):
    from edgewise.plugins import use_plugin

    module = use_plugin(str(examples / "team/cover.py"))
    env = ew.make_env(module.CoverEnv, num_envs=8, seed=0, num_agents=(2, 5))
    policy, root = module.paired(env), env.reset()
    for _ in range(20):
        root = env.step(policy(root))["next"]
    assert (root["metrics", "covered"] == 1).all()
