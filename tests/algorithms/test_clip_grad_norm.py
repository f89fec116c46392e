"""Gradient clipping of the off-policy agents: that of torch, which never makes a gradient larger."""

import pytest
import torch
from torch import nn

from edgewise.algorithms.gradients import clip_grad_norm


@pytest.mark.parametrize("scale", [1e-3, 0.9, 1.1, 1e3])
def test_it_is_that_of_torch(scale):
    ours, theirs = ([nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2, 2))] for _ in range(2))
    for parameters in (ours, theirs):
        for number, parameter in enumerate(parameters):
            parameter.grad = torch.full_like(parameter, scale * (number + 1) / 19**0.5)
    expected = nn.utils.clip_grad_norm_(theirs, 1.0)
    torch.testing.assert_close(clip_grad_norm(ours, 1.0), expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    assert expected.item() == pytest.approx(scale, rel=1e-5)
