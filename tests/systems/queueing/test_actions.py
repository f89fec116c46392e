"""Sets of nodes as actions: the contract of a layout, no edge inside, random sets, and how they are drawn."""

import pytest
import torch
from tests.graphs.actions import contract
from tests.graphs.actions.contract import SPEC

from edgewise.data.random_policy import RandomPolicy
from edgewise.systems.queueing.actions import ChooseIndependentSet

SET = ChooseIndependentSet()
MASK = [True, True, True, False]


def test_the_contract_of_a_layout():
    contract.check_shapes(SET, MASK)
    for lead in ((), (200,), (4, 50)):
        contract.check_samples(SET, MASK, lead)
    contract.check_wrong_actions(SET, MASK)
    contract.check_missing_mask(SET)


def test_a_set_has_no_edge_inside_and_only_allowed_nodes():
    sets = [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    chosen = [[bool(node) for node in row] for row in sets]
    assert contract.legal(SET, chosen, MASK) == [True, True, True, False, False, False]


def test_one_direction_of_an_edge_is_enough_for_a_conflict():
    seen = contract.observation(SET, MASK, (1,))
    seen["graph", "edge_mask"][..., 1] = False  # 0 -> 1 stays
    assert not SET.is_legal(torch.tensor([[True, True, False, False]]), seen, SPEC)


def test_sampled_sets_obey_edges_of_one_direction():
    seen = contract.observation(SET, MASK, (64,))
    seen["graph", "edge_mask"][..., [1, 3]] = False  # 0 -> 1 and 1 -> 2 stay
    sampled = SET.sample(seen, SPEC, generator=torch.Generator().manual_seed(0))
    assert SET.is_legal(sampled, seen, SPEC).all()
    assert set(map(tuple, sampled.int().tolist())) == {(1, 0, 1, 0), (0, 1, 0, 0)}


def test_sampled_sets_are_independent_and_as_large_as_they_can_be():
    def sampled(mask):
        return RandomPolicy(SET, SPEC, seed=0)(contract.observation(SET, mask, (3000,)))["action"]

    kinds, counts = sampled(MASK).unique(dim=0, return_counts=True)
    assert {tuple(kind) for kind in kinds.int().tolist()} == {(1, 0, 1, 0), (0, 1, 0, 0)}
    assert counts[kinds[:, 1]].item() / 3000 == pytest.approx(1 / 3, abs=0.04)
    assert not sampled([False, True, True, False])[:, [0, 3]].any()
    assert not sampled([False] * 4).any()


def test_the_mask_is_by_default_the_nodes_there_are_and_the_set_may_be_empty():
    graph = contract.observation(SET)["graph"]
    assert torch.equal(SET.default_mask(graph), graph["node_mask"])
    assert SET.has_legal_action(torch.zeros(2, 4, dtype=torch.bool)).all()


def test_the_nodes_of_a_set_are_marked():
    seen = contract.observation(SET, MASK, (1,))
    assert SET.legal_nodes(seen).tolist() == [MASK]
    marks = SET.marks(torch.tensor([True, False, True, False]), seen[0])
    assert (marks.nodes, marks.text) == ((0, 2), "nodes 0, 2")
