"""One edge of each group: every group must be legal, and the marked edges are those that were chosen."""

import torch
from tensordict import TensorDict

from edgewise.graphs.actions import ChooseEdgePerGroup

LAYOUT = ChooseEdgePerGroup(3, 2)
MASK = torch.tensor([[[1, 1, 0], [1, 0, 1], [1, 0, 0]], [[1, 0, 0], [1, 1, 1], [1, 1, 0]]], dtype=torch.bool)


def observation():
    return TensorDict({"action_mask": MASK}, [2])


def test_a_world_is_legal_only_if_every_group_is():
    for action, expected in (
        ([[1, 2, 0], [0, 1, 1]], [True, True]),
        ([[2, 2, 0], [0, 1, 2]], [False, False]),
        ([[0, 0, 0], [0, 2, 1]], [True, True]),
        ([[1, 1, 0], [0, 0, 0]], [False, True]),
    ):
        assert LAYOUT.is_legal(torch.tensor(action), observation(), None).tolist() == expected


def test_groups_with_an_edge_decide():
    choices = LAYOUT.choices(observation(), None)
    assert choices.legal.equal(MASK)
    assert choices.counted.tolist() == [[True, True, False], [False, True, True]]


def test_the_marked_edges_are_those_chosen_in_their_group():
    marks = LAYOUT.marks(torch.tensor([1, 2, 0]), observation()[0])
    assert marks.edges == (0, 3)
    assert LAYOUT.marks(torch.tensor([2, 0, 2]), observation()[0]).edges == (1, 5)
    assert LAYOUT.marks(torch.tensor([0, 0, 0]), observation()[0]).edges == ()
