"""Simulated networks against closed forms and the edge of their capacity."""

import math

import pytest
import torch

from edgewise.config.errors import ConfigError
from edgewise.systems.multihop.dynamics import at_nodes
from edgewise.systems.multihop.networks.batch import networks_of
from edgewise.systems.multihop.networks.generate import barabasi_network, capacity_factor, scaled
from edgewise.systems.multihop.networks.instance import Instance, Link, TrafficClass
from edgewise.systems.multihop.routers import ROUTERS, BackPressure, BiasedBackPressure, Ties
from edgewise.systems.multihop.scenario import load_instances
from edgewise.systems.multihop.simulate import baseline_run, simulate_slots


def line(nodes, rate, *, both_ways=False):
    links = [Link(node, node + 1, 1.0) for node in range(nodes - 1)]
    links += [Link(link.end, link.start, 1.0) for link in links] if both_ways else []
    return Instance(f"line{nodes}", nodes, tuple(links), (TrafficClass(nodes - 1, {0: rate}),))


TANDEMS = [(2, 0.8), (3, 0.5), (3, 0.8), (4, 0.8)]


def tandem_mean(nodes, rate):
    return rate**2 / (2 * (1 - rate)) + rate * (nodes - 2)


def mean_backlogs(rule, instances, *, worlds, slots, warm_up, seed=0):
    """The mean backlog on each instance, after a warm-up."""
    networks = networks_of(instances)
    network = torch.arange(len(instances)).repeat_interleave(worlds)
    requests = rule(networks)
    totals = []
    for length in (warm_up, slots):
        generator = torch.Generator().manual_seed(seed)
        totals.append(simulate_slots(requests, networks, network=network, slots=length, generator=generator))
    spent = (totals[1].backlog_sum - totals[0].backlog_sum) / (slots - warm_up)
    return spent.view(len(instances), worlds).mean(-1).tolist()


def always_forward(networks):
    def requests(queues, capacity, network):
        wiring = networks.wiring(network)
        return torch.minimum(at_nodes(queues, wiring.start), capacity.unsqueeze(-1)) * wiring.usable

    return requests


def test_a_tandem_line_that_always_forwards():
    instances = [line(*case) for case in TANDEMS]
    got = mean_backlogs(always_forward, instances, worlds=400, slots=2000, warm_up=200)
    assert got == pytest.approx([tandem_mean(*case) for case in TANDEMS], rel=0.02)


def test_a_bias_takes_the_gradient_penalty_off_backpressure():
    """Plain BackPressure needs longer queues upstream; leaning forward it does as well as forwarding."""
    instances = [line(3, 0.8, both_ways=True), line(4, 0.8, both_ways=True)]
    biased = mean_backlogs(
        lambda n: BiasedBackPressure(n).requests, instances, worlds=200, slots=1500, warm_up=200
    )
    plain = mean_backlogs(lambda n: BackPressure(n).requests, instances, worlds=100, slots=1000, warm_up=200)
    assert biased == pytest.approx([tandem_mean(3, 0.8), tandem_mean(4, 0.8)], rel=0.04)
    assert plain[0] > 1.2 * biased[0]
    assert plain[1] > 1.5 * biased[1]


@pytest.mark.parametrize(("share", "grows"), [(0.9, False), (1.1, True)])
def test_spbp_is_stable_below_capacity_and_nothing_is_above(share, grows):
    drawn = barabasi_network(8, seed=2, load=1.0)
    instance = scaled(drawn, share * capacity_factor(drawn))
    networks = networks_of([instance])
    zero = torch.zeros(24, dtype=torch.int64)
    requests = BiasedBackPressure(networks).requests
    ends = []
    for slots in (400, 800):
        generator = torch.Generator().manual_seed(0)
        world = simulate_slots(requests, networks, network=zero, slots=slots, generator=generator)
        ends.append(world.queues.sum((1, 2)))
    slope = (ends[1] - ends[0]) / 400
    error = slope.std().item() / math.sqrt(len(slope))
    excess = (1 - 1 / share) * instance.load
    if grows:
        assert slope.mean().item() > 0.3 * excess
        assert slope.mean().item() > 5 * error
    else:
        assert slope.mean().item() < 0.1 * instance.load + 3 * error


@pytest.mark.parametrize("policy", ROUTERS)
def test_a_run_reports_what_it_did(policy):
    (instance,) = load_instances(("diamond",))
    run = baseline_run(policy, instance, slots=60, seeds=4, seed=1)
    assert run == baseline_run(policy, instance, slots=60, seeds=4, seed=1)
    assert run.backlog != baseline_run(policy, instance, slots=60, seeds=4, seed=2).backlog
    assert run.backlog == pytest.approx(sum(run.backlogs) / 4)
    assert run.standard_error == pytest.approx(torch.tensor(run.backlogs).double().std().item() / 2)
    assert 0.5 < run.throughput <= 1.0
    assert (run.policy, run.slots, run.seeds, run.ties) == (policy, 60, 4, Ties())


def test_everything_that_came_is_waiting_or_delivered():
    networks = networks_of(load_instances(("two-path", "cross", "diamond", "barabasi9")))
    network = torch.arange(4).repeat(3)
    world = simulate_slots(
        BackPressure(networks).requests,
        networks,
        network=network,
        slots=80,
        generator=torch.Generator().manual_seed(0),
    )
    assert torch.equal(world.arrived, world.delivered + world.queues.sum((1, 2), dtype=torch.float64))


def test_capacities_of_poisson_links_change_from_slot_to_slot():
    networks = networks_of(load_instances(("diamond",)))
    seen = []

    def watch(queues, capacity, network):
        seen.append(capacity.clone())
        return torch.zeros(len(queues), networks.num_links, networks.num_classes)

    zero = torch.zeros(200, dtype=torch.int64)
    simulate_slots(watch, networks, network=zero, slots=30, generator=torch.Generator().manual_seed(0))
    every = torch.stack(seen)
    assert torch.allclose(every.mean((0, 1)), networks.rate[0], rtol=0.05)
    assert torch.allclose(every.var((0, 1)), networks.rate[0], rtol=0.1)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [({"policy": "spdp"}, "spbp"), ({"slots": 0}, "at least one slot"), ({"seeds": 0}, "at least one slot")],
)
def test_runs_that_cannot_be_are_named(wrong, complaint):
    (instance,) = load_instances(("two-path",))
    with pytest.raises(ConfigError, match=complaint):
        baseline_run(**{"policy": "spbp", "instance": instance, **wrong})
