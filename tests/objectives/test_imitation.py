"""The distance to an expert against counting by hand."""

import math

import torch

from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical
from edgewise.objectives.imitation import exact_match, negative_log_likelihood


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
