"""Ragged tensors are the padded ones in everything that is done with them, and hold live slots only."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tensordict import TensorDict

from edgewise.graphs.actions import AgentsDiscrete, ChooseNode
from edgewise.graphs.edges import Explicit
from edgewise.graphs.ragged import (
    Ragged,
    alike,
    pack,
    padded,
    pays,
    ragged,
    stored_bytes,
    trimmed,
)
from edgewise.graphs.slots import used_slots
from edgewise.graphs.spec import GraphSpec

SLOTS = 6


def is_ragged(tensordict):
    return any(isinstance(value, Ragged) for value in tensordict.values(True, True))


def rows(*lead, place=0, seed=0, features=2):
    """A padded tensor with zeros after the slots in use, and how many these are."""
    generator = torch.Generator().manual_seed(seed)
    used = torch.randint(0, SLOTS + 1, lead, generator=generator)
    exists = (torch.arange(SLOTS) < used.unsqueeze(-1)).unsqueeze(-1)
    value = torch.randn(*lead, SLOTS, features, generator=generator).masked_fill(~exists, 0.0)
    return value.movedim(-2, -1) if place else value, used


def both(*lead):
    """The same TensorDict, ragged and padded."""
    (first, used), (second, other) = rows(*lead), rows(*lead, place=1, seed=1)
    plain = TensorDict(
        {"a": first, "b": {"c": second}, "number": torch.arange(used.numel()).view(lead)}, lead
    )
    mine = plain.clone()
    mine["a"] = ragged(first, used, place=0)
    mine["b", "c"] = ragged(second, other, place=1)
    return mine, plain


MOVES = {
    "rows": lambda td: td[torch.tensor([2, 0])],
    "pairs": lambda td: td[torch.tensor([2, 0, 2]), torch.tensor([1, 1, 0])],
    "by a mask": lambda td: td[td["number"] % 2 == 0],
    "flat": lambda td: td.reshape(-1),
    "back": lambda td: td.reshape(-1).unflatten(0, (3, 4)),
    "last": lambda td: td[..., -1],
    "slice": lambda td: td[1:, :2],
    "one": lambda td: td[1],
    "stack": lambda td: torch.stack([td, td[torch.tensor([1, 0, 3, 2])]], 1),
    "cat": lambda td: torch.cat([td, td[:2]]),
    "split": lambda td: td.reshape(-1).split(5)[1],
    "parts": lambda td: td.reshape(-1)[torch.arange(11, -1, -1)].tensor_split(5)[3],
    "clone": lambda td: td.clone(),
    "expand": lambda td: td[:1].expand(5, 3),
    "unsqueeze": lambda td: td.unsqueeze(1),
    "double": lambda td: td.apply(lambda value: value.double()),
    "clamp": lambda td: td.apply(lambda value: value.clamp(-1, 1)),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_moving_rows_keeps_them_ragged(move):
    mine, plain = (move(td) for td in both(4, 3))
    assert isinstance(mine["a"], Ragged)
    assert isinstance(mine["b", "c"], Ragged)
    assert (padded(mine) == plain).all()
    assert mine.batch_size == plain.batch_size


def test_rows_of_several_contents_join():
    (one, used), (other, more) = rows(4, 3), rows(4, 3, seed=7)
    parts = ragged(one, used, place=0), ragged(other, more, place=0)
    for join, dim in ((torch.cat, 0), (torch.cat, 1), (torch.stack, 0), (torch.stack, 2)):
        found = join(parts, dim)
        assert isinstance(found, Ragged)
        assert torch.equal(found.padded(), join((one, other), dim))


COMPUTATIONS = {
    "sum": lambda value: value.sum(-1),
    "plus": lambda value: value + 1,
    "product": lambda value: value @ value.mT,
    "transposed": lambda value: value.transpose(0, 1),
    "where": lambda value: torch.where(value > 0, value, 1.0),
    "from the slots": lambda value: value[..., 1],
    "above zero": lambda value: value.clamp(min=1),
}


@pytest.mark.parametrize("compute", COMPUTATIONS.values(), ids=COMPUTATIONS)
def test_anything_else_is_done_with_padded_tensors(compute):
    mine, plain = both(4, 3)
    found = compute(mine["a"])
    assert not isinstance(found, Ragged)
    torch.testing.assert_close(found, compute(plain["a"]), rtol=0, atol=0)


def test_writing_to_a_ragged_tensor_is_refused():
    mine, _ = both(4, 3)
    with pytest.raises(TypeError, match="would write to a Ragged tensor"):
        mine["a"].zero_()


@given(seed=st.integers(0, 1000), place=st.integers(0, 1))
def test_slots_after_the_last_number_are_cut(seed, place):
    value, used = rows(5, place=place, seed=seed)
    found = trimmed(value, place=place, batch_dims=1)
    assert torch.equal(found.padded(), value)
    assert (found.used <= used).all()
    assert found.numbers() == int(used.sum()) * 2


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4))
def test_used_slots_reach_up_to_the_last(masks):
    expected = [max((place + 1 for place, there in enumerate(mask) if there), default=0) for mask in masks]
    assert used_slots(torch.tensor(masks)).tolist() == expected


def observation(num_agents=0):
    """Three graphs of 1, 4 and 2 nodes with a hole, in 50 slots."""
    spec = GraphSpec(50, 2, edges=Explicit(70, 1))
    graph = spec.zeros(3)
    graph["node_mask"][0, 0] = graph["node_mask"][1, [0, 1, 3]] = graph["node_mask"][2, :2] = True
    graph["edge_mask"][1, :5] = True
    graph["x"] = torch.where(graph["node_mask"].unsqueeze(-1), torch.rand(3, 50, 2), torch.nan)
    mask = torch.ones(3, num_agents or 50, dtype=torch.bool)
    return TensorDict({"graph": graph, "action_mask": mask, "reward": torch.rand(3, 1)}, [3])


def test_packing_keeps_what_exists_and_costs_what_it_holds():
    root = observation()
    root["action_mask"] = root["graph", "node_mask"]
    packed, back = pack(root, ChooseNode()), padded(pack(root, ChooseNode()))
    assert is_ragged(packed)
    assert torch.equal(back["graph", "node_mask"], root["graph", "node_mask"])
    assert torch.equal(back["action_mask"], root["action_mask"])
    exists = root["graph", "node_mask"]
    assert torch.equal(back["graph", "x"][exists], root["graph", "x"][exists])
    nodes, edges, pointers = 1 + 4 + 2, 0 + 5 + 0, 3 * 2 * 8
    of_nodes, of_edges = 4 * 2 + 1 + 1, 2 * 8 + 1 + 4
    assert stored_bytes(packed) == nodes * of_nodes + edges * of_edges + 6 * pointers + 3 * 4


def test_a_mask_of_agents_is_no_mask_of_slots():
    packed = pack(observation(num_agents=2), AgentsDiscrete(2, 2))
    assert not isinstance(packed["action_mask"], Ragged)


def test_only_worlds_with_many_empty_slots_pay():
    root = observation()
    wide = root.expand(60, 3).reshape(-1)
    assert pays(wide)
    assert not pays(root)  # too few slots
    wide = wide.clone()
    wide["graph", "node_mask"][:] = True
    assert not pays(wide)


def test_entries_become_ragged_where_the_others_are():
    mine, plain = both(4, 3)
    found = alike(plain, mine)
    assert isinstance(found["a"], Ragged)
    assert (padded(found) == plain).all()
    assert not is_ragged(alike(mine, plain))
