"""Routing by lengths: distances against an independent computation, rules as lengths, and conservation."""

import pytest
import torch

from edgewise.envs.contract import check_graph_env
from edgewise.systems.multihop.baselines import LENGTH_BASELINES
from edgewise.systems.multihop.config import LengthsConfig
from edgewise.systems.multihop.lengths import MultihopLengthsEnv
from edgewise.systems.multihop.networks.batch import Networks, distances
from edgewise.systems.multihop.routers import ROUTERS
from edgewise.systems.multihop.routing import shortest_distances
from edgewise.systems.multihop.simulate import simulate_slots

MIXED = ("two-path", "cross", "barabasi8*3", "barabasi10*2")


def lengths(num_envs=16, seed=0, **settings):
    return MultihopLengthsEnv(
        LengthsConfig(**{"networks": MIXED, "max_steps": 20, **settings}), num_envs=num_envs, seed=seed
    )


def test_distances_are_those_of_floyd_and_warshall():
    env = lengths()
    networks = env.networks
    generator = torch.Generator().manual_seed(0)
    length = torch.rand(networks.rate.shape, generator=generator, dtype=torch.float64) + 0.1
    length = length.masked_fill(~networks.link_mask, torch.inf)
    found = shortest_distances(
        length, networks.wiring(torch.arange(len(networks))), num_nodes=networks.num_nodes
    )
    for number, instance in enumerate(env.instances):
        exists = networks.link_mask[number]
        start, end = networks.start[number][exists].tolist(), networks.end[number][exists].tolist()
        ends = list(zip(start, end, strict=True))
        table = distances(ends, length[number][exists].tolist(), num_nodes=instance.num_nodes)
        for kind, traffic in enumerate(instance.classes):
            expected = torch.from_numpy(table[:, traffic.destination])
            assert torch.allclose(found[number, : instance.num_nodes, kind], expected)


@pytest.mark.parametrize("name", sorted(LENGTH_BASELINES))
def test_the_lengths_of_a_rule_route_as_the_rule(name):
    env = lengths(64)
    root = LENGTH_BASELINES[name](env)(env.reset())
    assert env.actions.is_legal(root["action"], root, env.graph).all()
    state = root["state"]
    queues = torch.randint(0, 60, state["queues"].shape, generator=torch.Generator().manual_seed(0)).float()
    exists = env.networks.class_mask[state["network"]].unsqueeze(1)
    bias = env.decide(state, root["action"])
    found = env.rule.requests_with(bias, queues * exists, state["capacity"], state["network"])
    router = ROUTERS[name](env.networks)
    expected = router.requests(queues * exists, state["capacity"], state["network"])
    assert (found != expected).flatten(1).any(1).sum() <= 1  # a tie may be rounded differently


def test_a_held_episode_is_the_router_slot_by_slot():
    env = lengths(256, networks=("two-path",), max_steps=60)
    after = env.step(LENGTH_BASELINES["length-backpressure"](env)(env.reset()))["next"]
    router = ROUTERS["length-backpressure"](env.networks)
    totals = simulate_slots(
        router.requests,
        env.networks,
        network=torch.zeros(256, dtype=torch.int64),
        slots=60,
        generator=torch.Generator().manual_seed(1),
    )
    one, other = after["metrics", "backlog"], totals.backlog_sum / 60
    spread = (one.var() / 256 + other.var() / 256).sqrt().item()
    assert abs(one.mean().item() - other.mean().item()) < 4 * spread
    assert after["done"].all()
    assert torch.allclose(after["reward"].squeeze(-1), -60 * one, rtol=1e-5)


def test_packets_are_neither_lost_nor_made_whatever_the_lengths():
    env = lengths(64, hold=7)
    root = env.reset()
    for _ in range(3):
        root = env.step(env.rand_action(root))["next"].exclude("reward")
        state = root["state"]
        waiting = state["queues"].sum((-2, -1), dtype=torch.float64)
        assert torch.equal(state["arrived"], state["delivered"] + waiting)


def test_flow_features_are_an_addition():
    plain, more = lengths(flow_features=False), lengths()
    assert more.graph.node_features == plain.graph.node_features + 3
    assert torch.equal(more.features[..., : plain.graph.node_features], plain.features)


def test_the_prior_is_the_rule():
    env = lengths(prior="flow-backpressure")
    root = env.reset()
    expected = LENGTH_BASELINES["flow-backpressure"](env)(root.clone())["action"]
    assert torch.equal(root["action_prior"], expected)
    exists = Networks.of(env.networks.link_mask, root["state", "network"])
    assert (root["action_prior"][~exists] == 0).all()


@pytest.mark.parametrize(
    "settings", [{}, {"hold": 3}, {"flow_features": False, "prior": "length-backpressure"}]
)
def test_the_contract(settings):
    check_graph_env(lengths(4, max_steps=6, **settings))
