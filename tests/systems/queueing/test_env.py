"""The environment around the rules: endings, costs, masks, rates, stages and errors in the user's terms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.config.errors import ConfigError
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.envs.symlog import symlog
from edgewise.systems.queueing.baselines import BASELINES, MaxWeight
from edgewise.systems.queueing.config import QueueingConfig
from edgewise.systems.queueing.env import QueueingEnv

FAMILY = ("line3", "ring5", "star4", "clique3", "grid2x3", "geometric7*2")


def queueing(num_envs=8, seed=0, **settings):
    return QueueingEnv(QueueingConfig(**settings), num_envs=num_envs, seed=seed)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), baseline=st.sampled_from(sorted(BASELINES)), servable=st.booleans())
def test_every_schedule_is_independent_and_every_packet_counted(seed, baseline, servable):
    env = queueing(6, seed, graphs=FAMILY, arrivals_servable=servable, service_law="poisson", initial_queue=4)
    root, act = env.reset(), BASELINES[baseline](env)
    departed = torch.zeros_like(root["state", "queues"])
    for _ in range(6):
        step = env.step(act(root))
        before, after = step["state"], step["next", "state"]
        assert torch.equal(after["scheduled"], step["action"]), "nothing was silenced"
        adjacency = env.conflict_graphs.adjacency[before["conflict_graph"]]
        both = after["scheduled"].unsqueeze(-1) & after["scheduled"].unsqueeze(-2)
        assert not (adjacency & both).any()
        left = before["queues"] - after["queues"] + after["arrived"] - before["arrived"]
        assert (left >= 0).all()
        assert (left <= before["service"] * after["scheduled"]).all()
        departed += left
        root = env.step_mdp(step)
    assert torch.equal(departed + root["state", "queues"], root["state", "arrived"])


@given(st.integers(0, 1000))
def test_any_action_at_all_leaves_an_independent_set(seed):
    env = queueing(8, seed, graphs=FAMILY, interference_penalty=0.25)
    env.check_actions = False
    root = env.reset()
    generator = torch.Generator().manual_seed(seed)
    action = torch.rand(8, env.graph.num_nodes, generator=generator) < 0.6
    after = env.step(root.set("action", action))["next"]
    kept = after["state", "scheduled"]
    assert (kept <= action).all()
    assert not (kept & ~root["graph", "node_mask"]).any()
    adjacency = env.conflict_graphs.adjacency[root["state", "conflict_graph"]]
    assert not (adjacency & kept.unsqueeze(-1) & kept.unsqueeze(-2)).any()
    cost = after["state", "queues"].sum(-1) + 0.25 * (action & ~kept).sum(-1)
    assert torch.equal(after["reward"].squeeze(-1), -cost)


def test_overflow_is_truncated_and_costs():
    env = queueing(
        1, graphs=("clique3",), arrival_law="fixed", arrival_rate=1.0, max_backlog=9.0, max_steps=50
    )
    root, rewards = env.reset(), []
    while not root["done"].item():
        step = env.step(MaxWeight(env)(root))
        rewards.append(step["next", "reward"].item())
        root = env.step_mdp(step)
    assert rewards == [-3.0, -5.0, -7.0, -9.0, -11.0 - 9.0]
    assert root["truncated"].item()
    assert not root["terminated"].item()
    assert root["metrics", "overflow"].item() == 1.0
    assert root["metrics", "backlog"].item() == pytest.approx(7.0)


def test_costs_can_be_per_node_of_each_graph():
    """Padding does not count: a star of four beside a line of nine."""
    env = queueing(16, graphs=("star4", "line9"), reward_scale="nodes", initial_queue=4)
    step = env.step(MaxWeight(env)(env.reset()))
    sizes = torch.tensor([4.0, 9.0])[step["state", "conflict_graph"]]
    assert sizes.unique().numel() == 2
    backlog = step["next", "state", "queues"].sum(-1)
    torch.testing.assert_close(step["next", "reward"].squeeze(-1), -backlog / sizes)


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_ending_by_overflow_never_pays(discount):
    """Even a critic that knows nothing (zero after the cut) rates overflowing below being served as usual."""
    env = queueing(
        1, graphs=("clique1",), arrival_law="fixed", arrival_rate=1.0, max_backlog=3.0, max_steps=99
    )
    idle, served = [], []
    root = env.reset()
    while not root["done"].item():
        step = env.step(root.set("action", torch.zeros(1, 1, dtype=torch.bool)))
        idle.append(step["next", "reward"].item())
        root = env.step_mdp(step)
    root = env.reset()
    for _ in idle:
        step = env.step(root.set("action", root["action_mask"]))
        served.append(step["next", "reward"].item())
        root = env.step_mdp(step)
    returns = [sum(r * discount**t for t, r in enumerate(rewards)) for rewards in (idle, served)]
    assert returns[0] < returns[1]


def test_a_time_limit_is_a_truncation():
    env = queueing(4, max_steps=3)
    flags = env.rollout(3, break_when_any_done=False)["next"]
    assert flags["truncated"][:, -1].all()
    assert not flags["terminated"].any()


def test_only_nodes_with_something_to_send_may_be_chosen():
    env = queueing(64, graphs=("line3", "ring5"), service_law="bernoulli", service_rate=0.5, initial_queue=2)
    root = env.reset()
    state = root["state"]
    assert torch.equal(root["action_mask"], (state["queues"] > 0) & (state["service"] > 0))
    assert not (root["action_mask"] & ~root["graph", "node_mask"]).any()


def test_features_are_those_of_the_card():
    env = queueing(16, graphs=("line3", "ring5"), initial_queue=9, service_law="poisson", service_rate=2.0)
    root = env.reset()
    state, x = root["state"], root["graph", "x"]
    queues, service = state["queues"], state["service"]
    weight, line = queues * service, state["conflict_graph"] == 0
    for column, value in enumerate((queues, service, weight)):
        assert torch.allclose(x[..., column], torch.log1p(value))
    in_the_way = torch.stack(
        (weight[line][:, 1], weight[line][:, 0] + weight[line][:, 2], weight[line][:, 1]), -1
    )
    assert torch.allclose(x[line][:, :3, 3], torch.log1p(in_the_way))
    assert torch.allclose(x[line][:, :, 4].exp() - 1, torch.tensor([1.0, 2.0, 1.0, 0.0, 0.0]))
    assert torch.allclose(
        x[~line][:, :, 3], torch.log1p(weight[~line].roll(1, -1) + weight[~line].roll(-1, -1))
    )
    assert torch.equal(x[..., 5], state["arrival_rate"])
    assert torch.equal(x[line][:, :, 6], torch.tensor([-1.0, 0.0, 1.0, 0.0, 0.0]).expand(int(line.sum()), 5))


def test_edges_are_both_directions_of_every_conflict():
    env = queueing(12, graphs=("line3", "ring5"))
    graph = env.reset()["graph"]
    edges = env.graph.edges_of(graph)
    for world in range(12):
        ends = edges.index[world][:, edges.mask[world]].T.tolist()
        adjacency = env.conflict_graphs.adjacency[graph["topology"][world]]
        assert sorted(map(tuple, ends)) == sorted(map(tuple, adjacency.nonzero().tolist()))


@pytest.mark.parametrize("x", [-3.5, 0.0, 1e-6, 7.0])
def test_symlog(x):
    assert symlog(torch.tensor(x)).item() == pytest.approx(math.copysign(math.log1p(abs(x)), x))


def test_a_load_is_a_share_of_what_each_graph_carries():
    env = queueing(64, graphs=("line3", "ring5", "clique4"), load=0.8)
    state = env.reset()["state"]
    for number, rate in enumerate((0.4, 0.32, 0.2)):
        mine = state[state["conflict_graph"] == number]
        assert torch.allclose(mine["arrival_rate"][mine["node_mask"]], torch.tensor(rate))


def test_a_range_is_drawn_by_node_and_a_load_by_world():
    rates = queueing(200, graphs=("line3",), arrival_rate=(0.1, 0.3)).reset()["state", "arrival_rate"]
    assert rates.min().item() >= 0.1
    assert rates.max().item() <= 0.3
    assert len(rates.unique()) > 500
    loads = queueing(200, graphs=("line3",), load=(0.2, 0.9)).reset()["state", "arrival_rate"]
    assert (loads == loads[:, :1]).all()
    assert len(loads.unique()) > 150


def test_given_rates_stay_with_their_nodes():
    settings = {"graphs": ("5:0-1,0-2,0-3,1-2,1-3,2-4,3-4",), "arrival_rates": (0.1, 0.2, 0.3, 0.1, 0.1)}
    assert queueing(1, **settings).reset()["state", "arrival_rate"].flatten().tolist() == pytest.approx(
        [0.1, 0.2, 0.3, 0.1, 0.1]
    )


def test_random_priorities_deal_the_same_numbers_in_another_order():
    priority = queueing(50, graphs=("line4",), node_priority="random").reset()["state", "priority"]
    assert torch.allclose(priority.sort(-1).values, torch.linspace(-1, 1, 4).expand(50, 4))
    assert len(priority.unique(dim=0)) > 10
    assert not queueing(5, node_priority="none").reset()["state", "priority"].any()


def test_stages_use_some_of_the_graphs():
    env = queueing(40, graphs=("line3", "geometric5*3", "ring5"))
    env.apply_stage(graphs=("geometric5*3",), arrival_rate=0.2)
    state = env.reset()["state"]
    assert set(state["conflict_graph"].tolist()) == {1, 2, 3}
    assert state["arrival_rate"].max().item() == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("stage", "complaint"),
    [
        ({"graphs": ("line4",)}, "line4"),
        ({"arrival_rate": 0.9}, "exceeds"),
        ({"load": 0.3}, "load"),
        ({"max_steps": 3}, "max_steps"),
    ],
)
def test_stages_beyond_what_was_built_are_refused(stage, complaint):
    with pytest.raises(ConfigError, match=complaint):
        queueing().apply_stage(**stage)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"graphs": ("lime3",)}, "is not a graph name"),
        ({"graphs": ()}, "graphs"),
        ({"graphs": ("ring2",)}, "at least 3 nodes"),
        ({"graphs": ("grid0x3",)}, "at least one row"),
        ({"graphs": ("geometric0",)}, "at least one node"),
        ({"graphs": ("4:0-4",)}, "beyond the last"),
        ({"graphs": ("4:1-1",)}, "joins a node to itself"),
        ({"arrival_rate": 1.2}, "Bernoulli arrivals"),
        ({"arrival_rate": -0.1}, "negative"),
        ({"arrival_rate": (0.5, 0.2)}, "low to high"),
        ({"service_rate": 1.5, "service_law": "bernoulli"}, "Bernoulli service"),
        ({"arrival_rates": (0.1, 0.2)}, "line3 has 3 nodes"),
        ({"load": 0.8, "service_rate": 2.0}, "unit servers"),
        ({"load": 0.8, "arrival_rates": (0.1, 0.1, 0.1)}, "not both"),
        ({"load": 3.0}, "fraction of capacity"),
        ({"max_backlog": 0.0}, "max_backlog"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make_env("queueing", **settings)


def test_a_load_that_bernoulli_arrivals_cannot_make_is_named():
    with pytest.raises(ConfigError, match=r"2:.*1\.5 Bernoulli"):
        make_env("queueing", graphs=("2:",), load=1.5)


def test_ties_are_broken_as_asked_and_by_seed():
    env = queueing(400, graphs=("line3",), initial_queue=1)
    root = env.reset()
    root["state", "queues"] = torch.tensor([1.0, 2.0, 1.0]).expand(400, 3)
    root["action_mask"] = torch.ones(400, 3, dtype=torch.bool)
    middle, ends = [False, True, False], [True, False, True]
    assert MaxWeight(env)(root)["action"].unique(dim=0).tolist() == [middle]
    assert MaxWeight(env, tie="largest")(root)["action"].unique(dim=0).tolist() == [ends]
    one, again, other = (MaxWeight(env, tie="random", seed=s)(root)["action"].clone() for s in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert one[:, 1].float().mean().item() == pytest.approx(2 / 3, abs=0.1), "the last of the order is an end"


def test_initial_queues_are_uniform_up_to_the_largest():
    queues = queueing(400, 0, graphs=("ring5",), initial_queue=2).reset()["state", "queues"]
    shares = torch.stack([(queues == length).float().mean() for length in range(3)])
    assert shares.sum() == 1
    assert (shares - 1 / 3).abs().max() < 0.05


def test_the_prior_by_degrees_favours_the_hub():
    """On a star of four leaves: degrees 4 and 1, mean 8/5; on a single node, and where padded, by hand."""
    env = make_env(
        "queueing", graphs=("star5", "line1"), num_envs=32, seed=0, initial_queue=5, prior="degree-weight"
    )
    seen = env.reset()
    star = seen["state", "conflict_graph"] == 0
    assert star.any()
    assert not star.all()
    factor = torch.where(
        star.unsqueeze(-1), torch.tensor([2.5, *[0.625] * 4]), torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
    )
    weight = seen["state", "queues"] * seen["state", "service"]
    assert torch.allclose(seen["action_prior"], weight * factor)


def test_weighting_by_degrees_serves_a_hub_before_the_sum_of_its_leaves_is_shorter():
    """Four leaves of one packet: a hub of two is lighter, by degrees heavier; half a packet is not."""
    env = make_env("queueing", graphs=("star5",), num_envs=2, seed=0)
    root = env.reset()
    root["state", "queues"] = torch.tensor([[2.0, 1, 1, 1, 1], [0.5, 1, 1, 1, 1]])
    root["action_mask"] = torch.ones_like(root["action_mask"])
    plain = BASELINES["maxweight"](env)(root.clone())["action"]
    weighted = BASELINES["degree-maxweight"](env)(root.clone())["action"]
    hub, leaves = [True, False, False, False, False], [False, True, True, True, True]
    assert plain.tolist() == [leaves, leaves]
    assert weighted.tolist() == [hub, leaves]


def test_the_prior_is_queue_times_channel():
    env = make_env("queueing", graphs=("line3", "ring5"), num_envs=8, seed=0, initial_queue=5, prior="weight")
    check_graph_env(env)
    seen = env.reset()
    assert torch.equal(seen["action_prior"], seen["state", "queues"] * seen["state", "service"])


def test_power_maxweight_weighs_degrees_times_powers_of_queues():
    """A star: one long queue at the hub against three short ones at the leaves, by hand."""
    env = make_env("queueing", num_envs=2, seed=0, graphs=["star4"], arrival_rate=0.1)
    root = env.reset()
    # The hub has degree 3: 3 * 2^.3 = 3.69 is above 3 * 1; 3 * 1 is below 3 * 2^.3.
    root["state", "queues"][:] = torch.tensor([[2.0, 1.0, 1.0, 1.0], [1.0, 2.0, 2.0, 2.0]])
    root["action_mask"][:] = True
    # 3 * 2 is below 9, but 3 * 2^.3 is above 9^.3: one long queue does not outweigh the hub.
    long = root.clone()
    long["state", "queues"][:] = torch.tensor([2.0, 9.0, 0.0, 0.0])
    assert BASELINES["power-maxweight"](env)(long.clone())["action"][:, 0].all()
    assert not BASELINES["degree-maxweight"](env)(long.clone())["action"][:, 0].any()
    found = BASELINES["power-maxweight"](env)(root.clone())["action"]
    assert found.tolist() == [[True, False, False, False], [False, True, True, True]]
    # MaxWeight serves the leaves both times, since 2 is below 1 + 1 + 1.
    plain = BASELINES["maxweight"](env)(root.clone())["action"]
    assert plain[0].tolist() == [False, True, True, True]
