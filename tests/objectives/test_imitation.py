"""The distance to an expert against counting by hand."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.models.distributions.independent_set import IndependentSet
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical
from edgewise.objectives.imitation import exact_match, negative_log_likelihood


def line(logits):
    """Sets on a line of three nodes, all allowed."""
    adjacent = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=torch.bool)
    allowed = torch.ones_like(logits, dtype=torch.bool)
    return IndependentSet(logits, allowed, adjacent=adjacent.expand(*logits.shape[:-1], 3, 3))


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_the_surprise_of_a_set_is_that_of_the_nodes_that_were_asked(logits):
    """Node 1 is not asked once node 0 has joined; so its logit cannot matter."""
    distribution = line(torch.tensor([logits], dtype=torch.float64))
    joined = [1 / (1 + math.exp(-logit)) for logit in logits]
    wanted = torch.tensor([[True, False, True]])
    by_hand = -math.log(joined[0]) - math.log(joined[2])
    assert math.isclose(negative_log_likelihood(distribution, wanted).item(), by_hand, rel_tol=1e-9)
    assert negative_log_likelihood(distribution, torch.tensor([[True, True, False]])).item() > 1e30


def test_a_set_matches_only_as_a_whole():
    distribution = line(torch.tensor([[2.0, 2.0, 2.0], [2.0, 2.0, -2.0], [-2.0, 2.0, 2.0]]))
    wanted = torch.tensor([[True, False, True], [True, False, True], [False, True, False]])
    assert exact_match(distribution, wanted).tolist() == [1.0, 0.0, 1.0]


def test_agents_match_one_by_one_and_joint_choices_together():
    logits = torch.tensor([[[3.0, 0.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, 3.0]]])
    wanted = torch.tensor([[0, 1], [0, 0]])
    assert exact_match(MaskedCategorical(logits), wanted).tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert exact_match(JointCategorical(logits), wanted).tolist() == [1.0, 0.0]


def test_a_forbidden_choice_takes_no_share_of_the_surprise():
    mask = torch.tensor([[True, True, False]])
    distribution = MaskedCategorical(torch.tensor([[0.0, 0.0, 9.0]]), mask)
    assert math.isclose(
        negative_log_likelihood(distribution, torch.tensor([1])).item(), math.log(2), rel_tol=1e-6
    )
