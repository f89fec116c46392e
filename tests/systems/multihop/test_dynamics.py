"""A slot of a multi-hop network against packets moved one link at a time, as the rules tell it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.multihop import dynamics
from edgewise.systems.multihop.networks.batch import networks_of
from edgewise.systems.multihop.networks.generate import barabasi_network
from edgewise.systems.multihop.scenario import load_instances

NETWORKS = networks_of(
    [*load_instances(("two-path", "line4", "cross", "diamond")), barabasi_network(9, seed=1)]
)


def batch(seed, worlds=5):
    """Worlds on different networks with random queues, capacities and requests, some of them impossible."""
    generator = torch.Generator().manual_seed(seed)
    network = torch.randint(len(NETWORKS), (worlds,), generator=generator)
    wiring = NETWORKS.wiring(network)
    exists = NETWORKS.node_mask[network].unsqueeze(-1) & NETWORKS.class_mask[network].unsqueeze(-2)
    shape = (worlds, NETWORKS.num_links, NETWORKS.num_classes)
    queues = torch.randint(0, 6, exists.shape, generator=generator) * exists
    queues = dynamics.deliver(queues.float(), wiring.destination)[0]
    capacity = torch.randint(0, 5, shape[:2], generator=generator).float()
    request = torch.randint(0, 4, shape, generator=generator).float()
    order = dynamics.random_order(wiring.start, generator)
    return network, wiring, queues, capacity, request, order


def slot_by_hand(wiring, queues, capacity, request, order, world):
    """One world, one link after another, each from what is left of the queues at the start of the slot."""
    left, coming = queues[world].clone(), torch.zeros_like(queues[world])
    carried = torch.zeros_like(request[world])
    for link in order[world].tolist():
        room = capacity[world, link].item()
        start, end = wiring.start[world, link], wiring.end[world, link]
        for kind in range(request.shape[-1]):
            if not wiring.usable[world, link, kind]:
                continue
            allowed = min(request[world, link, kind].item(), room)
            room -= allowed
            sent = min(allowed, left[start, kind].item())
            left[start, kind] -= sent
            coming[end, kind] += sent
            carried[link, kind] = sent
    after = left + coming
    delivered = torch.zeros(request.shape[-1])
    for kind, goal in enumerate(wiring.destination[world].tolist()):
        delivered[kind] = after[goal, kind]
        after[goal, kind] = 0.0
    return after, carried, delivered


@given(st.integers(0, 100_000))
def test_a_slot_is_packets_moved_one_link_at_a_time(seed):
    _, wiring, queues, capacity, request, order = batch(seed)
    got = dynamics.transmit(queues, request, capacity=capacity, wiring=wiring, order=order)
    for world in range(len(queues)):
        by_hand = slot_by_hand(wiring, queues, capacity, request, order, world)
        for mine, expected in zip(got, by_hand, strict=True):
            assert torch.equal(mine[world], expected)


@given(st.integers(0, 100_000))
def test_packets_are_conserved_and_no_link_carries_more_than_it_can(seed):
    _, wiring, queues, capacity, request, order = batch(seed)
    after, carried, delivered = dynamics.transmit(
        queues, request, capacity=capacity, wiring=wiring, order=order
    )
    assert torch.equal(dynamics.backlog(queues), dynamics.backlog(after) + delivered.sum(-1))
    assert (carried.sum(-1) <= capacity).all()
    assert (carried >= 0).all()
    assert (after >= 0).all()
    assert not carried[~wiring.usable].any()


def test_no_packet_hops_twice_in_a_slot():
    line = networks_of(load_instances(("line4",)))
    wiring = line.wiring(torch.zeros(1, dtype=torch.int64))
    queues = torch.zeros(1, 4, 2)
    queues[0, 0, 0] = 1.0
    request = torch.ones(1, line.num_links, 2) * (wiring.end > wiring.start).unsqueeze(-1)
    for place in (1, 2):
        order = dynamics.random_order(wiring.start, None)
        queues, _, _ = dynamics.transmit(
            queues, request, capacity=torch.full((1, line.num_links), 2.0), wiring=wiring, order=order
        )
        assert queues[0, :, 0].nonzero().flatten().tolist() == [place]


def test_orders_are_fair_and_keep_links_with_their_start():
    network = torch.full((4000,), 3)
    wiring = NETWORKS.wiring(network)
    order = dynamics.random_order(wiring.start, torch.Generator().manual_seed(0))
    assert torch.equal(wiring.start.gather(-1, order), wiring.start)
    assert torch.equal(order.sort(-1).values, torch.arange(order.shape[-1]).expand_as(order))
    assert (order[:, 0] == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)


@given(st.integers(0, 100_000))
def test_what_may_be_chosen(seed):
    _, wiring, queues, *_ = batch(seed)
    allowed = dynamics.choices(queues, wiring)
    for world in range(len(queues)):
        for link in range(allowed.shape[1]):
            waiting = [
                bool(wiring.usable[world, link, kind])
                and queues[world, wiring.start[world, link], kind].item() > 0
                for kind in range(queues.shape[-1])
            ]
            assert allowed[world, link].tolist() == [not any(waiting), *waiting]


def test_a_chosen_class_gets_all_the_capacity():
    got = dynamics.full_capacity_requests(torch.tensor([0, 2, 1]), torch.tensor([4.0, 3.0, 1.0]), 2)
    assert got.tolist() == [[0.0, 0.0], [0.0, 3.0], [1.0, 0.0]]
