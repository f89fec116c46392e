"""Routing rules against the same rules written for one world, one node and one link at a time."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.multihop.dynamics import Wiring, at_nodes
from edgewise.systems.multihop.networks.batch import networks_of
from edgewise.systems.multihop.networks.generate import barabasi_network
from edgewise.systems.multihop.networks.instance import Instance, Link, TrafficClass
from edgewise.systems.multihop.routers import (
    PRESSURE_ROUTERS,
    BackPressure,
    BiasedBackPressure,
    LengthBackPressure,
    OneLinkBackPressure,
    ShortestPaths,
    Ties,
)
from edgewise.systems.multihop.routing import pressure
from edgewise.systems.multihop.scenario import load_instances

INSTANCES = [*load_instances(("two-path", "line4", "cross", "diamond")), barabasi_network(9, seed=1)]
NETWORKS = networks_of(INSTANCES)


def worlds(seed, count=5):
    generator = torch.Generator().manual_seed(seed)
    network = torch.randint(len(NETWORKS), (count,), generator=generator)
    exists = NETWORKS.node_mask[network].unsqueeze(-1) & NETWORKS.class_mask[network].unsqueeze(-2)
    queues = (torch.randint(0, 5, exists.shape, generator=generator) * exists).float()
    queues.scatter_(-2, NETWORKS.destination[network].unsqueeze(-2), 0.0)
    capacity = torch.randint(0, 4, (count, NETWORKS.num_links), generator=generator).float()
    return network, queues, capacity


def pressed_links(world, network, queues, capacity, *, biased, ties):
    """Links that something presses along, by start: score, place in the file, slot and class, best first."""
    number = int(network[world])
    by_start: dict[int, list[tuple[float, int, int, int]]] = {}
    sign = {"highest": -1, "lowest": 1}
    for link in range(NETWORKS.num_links):
        start, end = NETWORKS.start[number, link].item(), NETWORKS.end[number, link].item()
        best = None
        for kind in range(NETWORKS.num_classes):
            if not NETWORKS.usable[number, link, kind] or queues[world, start, kind] <= 0:
                continue
            gain = (NETWORKS.delay[number, start, kind] - NETWORKS.delay[number, end, kind]).item()
            bias = 1 / gain if biased and abs(gain) > 1e-9 and math.isfinite(gain) else 0.0
            press = (queues[world, start, kind] - queues[world, end, kind] + bias).item()
            key = (-press, sign[ties.classes] * kind)
            best = min(best, (key, kind, press)) if best else (key, kind, press)
        if best and best[2] > 0:
            score = torch.tensor(best[2]) * capacity[world, link]
            place = NETWORKS.number[number, link].item()
            by_start.setdefault(start, []).append((-score.item(), sign[ties.links] * place, link, best[1]))
    return {start: sorted(found) for start, found in by_start.items()}


def requests_by_hand(world, network, queues, capacity, *, biased, ties):
    request = torch.zeros(NETWORKS.num_links, NETWORKS.num_classes)
    for start, found in pressed_links(world, network, queues, capacity, biased=biased, ties=ties).items():
        left = queues[world, start].clone()
        for _, _, link, kind in found:
            request[link, kind] = min(capacity[world, link].item(), left[kind].item())
            left[kind] -= request[link, kind]
    return request


TIES = st.builds(Ties, st.sampled_from(["highest", "lowest"]), st.sampled_from(["highest", "lowest"]))


@given(st.integers(0, 100_000), TIES, st.booleans())
def test_backpressure_is_the_rule_link_by_link(seed, ties, biased):
    network, queues, capacity = worlds(seed)
    rule = BiasedBackPressure if biased else BackPressure
    got = rule(NETWORKS, ties=ties).requests(queues, capacity, network)
    for world in range(len(queues)):
        expected = requests_by_hand(world, network, queues, capacity, biased=biased, ties=ties)
        assert torch.equal(got[world], expected)


@given(st.integers(0, 100_000), TIES)
def test_one_link_of_each_node_is_the_most_pressed(seed, ties):
    network, queues, capacity = worlds(seed)
    got = OneLinkBackPressure(NETWORKS, ties=ties).requests(queues, capacity, network)
    for world in range(len(queues)):
        expected = torch.zeros_like(got[world])
        pressed = pressed_links(world, network, queues, capacity, biased=False, ties=ties)
        for start, [(_, _, link, kind), *_] in pressed.items():
            expected[link, kind] = min(capacity[world, link], queues[world, start, kind])
        assert torch.equal(got[world], expected)


def test_power_decides_between_links_of_one_node():
    links = (Link(0, 1, 2.0, 5.0), Link(0, 2, 1.0, 0.0), Link(1, 3, 1.0), Link(2, 3, 1.0))
    network = networks_of([Instance("fork", 4, links, (TrafficClass(3, {0: 0.5}),))])
    queues, capacity = torch.zeros(1, 4, 1), network.rate
    queues[0, 0] = 3.0
    zero = torch.zeros(1, dtype=torch.int64)
    free, dear = (
        OneLinkBackPressure(network, power_weight=weight).requests(queues, capacity, zero)
        for weight in (0.0, 1.0)
    )
    assert free[0, :2, 0].tolist() == [2.0, 0.0]
    assert dear[0, :2, 0].tolist() == [0.0, 1.0]


@given(st.integers(0, 100_000), st.sampled_from([BackPressure, BiasedBackPressure, OneLinkBackPressure]))
def test_no_more_is_asked_for_than_is_queued_and_fits(seed, rule):
    network, queues, capacity = worlds(seed)
    wiring = NETWORKS.wiring(network)
    request = rule(NETWORKS, ties=Ties("random", "random"), seed=seed).requests(queues, capacity, network)
    asked = torch.zeros_like(queues).scatter_add(1, wiring.start.unsqueeze(-1).expand_as(request), request)
    assert (asked <= queues).all()
    assert (request.sum(-1) <= capacity).all()
    assert not request[~wiring.usable].any()
    assert ((request > 0).sum(-1) <= 1).all()


def test_the_bias_leads_closer_and_not_away():
    line = networks_of(load_instances(("line4",)))
    router = BiasedBackPressure(line)
    network = torch.zeros(1, dtype=torch.int64)
    wiring = line.wiring(network)
    bias = router.bias(network, wiring)[0, :, 0]
    expected = torch.where(wiring.end[0] > wiring.start[0], 1.0, -1.0)
    assert torch.equal(bias, expected)


def test_ways_of_equal_length_have_no_bias_however_they_are_summed():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ as floats and are the same way."""
    links = tuple(
        Link(*ends, rate)
        for ends, rate in {
            (0, 2): 10.0, (2, 3): 5.0, (3, 6): 10 / 3, (1, 4): 10 / 3, (4, 5): 5.0, (5, 6): 10.0, (0, 1): 1.0
        }.items()
    )  # fmt: skip
    instance = Instance("detour", 7, links, (TrafficClass(6, {0: 0.5}),), link_law="poisson")
    network = networks_of([instance])
    zero = torch.zeros(1, dtype=torch.int64)
    assert network.delay[0, 0, 0].item() != network.delay[0, 1, 0].item()
    sideways = (network.start[0] == 0) & (network.end[0] == 1)
    assert BiasedBackPressure(network).bias(zero, network.wiring(zero))[0, sideways].item() == 0.0


def test_random_ties_follow_their_seed():
    network = torch.zeros(300, dtype=torch.int64)
    two_path = networks_of(load_instances(("two-path",)))
    queues, capacity = torch.zeros(300, 8, 2), torch.ones(300, 8)
    queues[:, 0, 0] = 1.0
    one, again, other = (
        BackPressure(two_path, ties=Ties(links="random"), seed=seed).requests(queues, capacity, network)
        for seed in (0, 0, 1)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert one[:, 0, 0].mean().item() == pytest.approx(0.5, abs=0.1)


@given(st.integers(0, 100_000))
def test_shortest_paths_use_only_links_that_shorten_by_their_own_length(seed):
    network, queues, capacity = worlds(seed)
    request = ShortestPaths(NETWORKS, seed=seed).requests(queues, capacity, network)
    wiring, delay = NETWORKS.wiring(network), NETWORKS.delay[network]
    gain = at_nodes(delay, wiring.start) - at_nodes(delay, wiring.end)
    length = 1 / NETWORKS.rate[network].double()
    used = request > 0
    assert torch.allclose(gain[used], length.unsqueeze(-1).expand_as(gain)[used])
    assert (used.sum(-1) <= 1).all()


def test_shortest_paths_share_a_link_evenly_and_blindly():
    two_path = networks_of(load_instances(("two-path",)))
    network = torch.zeros(4000, dtype=torch.int64)
    request = ShortestPaths(two_path).requests(torch.zeros(4000, 8, 2), torch.ones(4000, 8), network)
    shared = (two_path.start[0] == 3).nonzero().item()
    assert request[:, shared].mean(0).tolist() == pytest.approx([0.5, 0.5], abs=0.04)


def test_an_empty_queue_presses_nowhere():
    """Not even where the queue at the other end is empty too, or a bias favours the link."""
    start, end = torch.tensor([[0, 0]]), torch.tensor([[1, 2]])
    usable = torch.ones(1, 2, 2, dtype=torch.bool)
    wiring = Wiring(start, end, torch.zeros_like(start), torch.tensor([[2, 2]]), usable)
    queues = torch.tensor([[[0.0, 3.0], [0.0, 1.0], [0.0, 0.0]]])
    found = pressure(queues, wiring, bias=torch.ones(1, 2, 2))
    assert found.tolist() == [[[-math.inf, 3.0], [-math.inf, 4.0]]]


@given(st.integers(0, 10_000), st.sampled_from(list(PRESSURE_ROUTERS)))
def test_scores_choose_what_the_rule_requests(seed, rule):
    """Of a link, the highest score is that of the class it requests, and only that score is positive."""
    network, queues, capacity = worlds(seed)
    router = PRESSURE_ROUTERS[rule](NETWORKS)
    scores, request = router.scores(queues, capacity, network), router.requests(queues, capacity, network)
    assert torch.equal(scores > 0, request > 0)
    sends = (request > 0).any(-1)
    assert torch.equal(scores.argmax(-1)[sends], request.argmax(-1)[sends])


def test_a_length_counts_as_packets():
    """On every link with finite distances, for one world, by hand."""
    network = torch.tensor([4])
    bias = LengthBackPressure(NETWORKS).bias(network, NETWORKS.wiring(network))[0]
    for link, (start, end) in enumerate(zip(NETWORKS.start[4], NETWORKS.end[4], strict=True)):
        for kind in NETWORKS.class_mask[4].nonzero().flatten():
            gain = float(NETWORKS.delay[4, start, kind] - NETWORKS.delay[4, end, kind])
            expected = 64.0 * gain if math.isfinite(gain) else 0.0
            assert float(bias[link, kind]) == pytest.approx(expected, rel=1e-5)
