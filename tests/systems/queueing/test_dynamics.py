"""A slot of conflict-graph scheduling against arithmetic by hand and a loop over nodes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.systems.queueing import dynamics
from edgewise.systems.queueing.sets.bits import pack, unpack


@st.composite
def graphs_and_sets(draw, largest=9):
    count = draw(st.integers(1, largest))
    seed = draw(st.integers(0, 10_000))
    generator = torch.Generator().manual_seed(seed)
    upper = (torch.rand(count, count, generator=generator) < draw(st.floats(0, 1))).triu(1)
    return upper | upper.T, torch.rand(5, count, generator=generator) < 0.5


@given(graphs_and_sets())
def test_what_stays_active_is_whoever_has_no_active_neighbour(case):
    adjacency, active = case
    stays = dynamics.resolve(active, pack(adjacency).expand(5, -1, -1))
    for world in range(5):
        for node in range(len(adjacency)):
            rivals = [n for n in range(len(adjacency)) if adjacency[node, n] and active[world, n]]
            assert stays[world, node] == (bool(active[world, node]) and not rivals)
    assert not (adjacency & stays.unsqueeze(-1) & stays.unsqueeze(-2)).any()


@given(graphs_and_sets())
def test_an_independent_set_is_left_alone(case):
    adjacency, active = case
    neighbours = pack(adjacency).expand(5, -1, -1)
    once = dynamics.resolve(active, neighbours)
    assert torch.equal(dynamics.resolve(once, neighbours), once)


@pytest.mark.parametrize("count", [1, 61, 62, 63, 130])
def test_bit_words_hold_graphs_beyond_one_word(count):
    adjacency = (torch.rand(count, count) < 0.1).triu(1)
    adjacency = adjacency | adjacency.T
    words = pack(adjacency)
    assert words.shape == (count, -(-count // 62))
    assert torch.equal(unpack(words, count), adjacency)
    active = torch.rand(count) < 0.3
    crossed = (adjacency & active).any(-1)
    assert torch.equal(dynamics.resolve(active, words), active & ~crossed)


def test_both_slot_orders_by_hand():
    queues, service = torch.tensor([0.0, 1.0, 5.0]), torch.tensor([1.0, 2.0, 2.0])
    active, arrivals = torch.tensor([True, True, False]), torch.tensor([1.0, 0.0, 1.0])
    textbook = dynamics.slot(queues, service, active=active, arrivals=arrivals)
    servable = dynamics.slot(queues, service, active=active, arrivals=arrivals, arrivals_servable=True)
    assert textbook.tolist() == [1.0, 0.0, 6.0]
    assert servable.tolist() == [0.0, 0.0, 6.0]


@given(st.integers(0, 10_000), st.booleans())
def test_packets_are_neither_made_nor_lost(seed, arrivals_servable):
    generator = torch.Generator().manual_seed(seed)
    shape = (4, 6)
    queues, service, arrivals = (torch.randint(0, 5, shape, generator=generator).float() for _ in range(3))
    active = torch.rand(shape, generator=generator) < 0.5
    after = dynamics.slot(
        queues, service, active=active, arrivals=arrivals, arrivals_servable=arrivals_servable
    )
    left = dynamics.departures(queues, after, arrivals)
    at_hand = queues + arrivals if arrivals_servable else queues
    assert torch.equal(left, torch.minimum(at_hand, service * active))
    assert (after >= 0).all()


def test_who_can_send_depends_on_the_slot_order():
    queues, service = torch.tensor([0.0, 0.0, 2.0, 2.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert dynamics.servable(queues, service).tolist() == [False, False, False, True]
    assert dynamics.servable(queues, service, arrivals_servable=True).tolist() == [False, True, False, True]
