"""A linear layer by transposed weights equals `nn.Linear`, and its state is that of `nn.Linear`."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from edgewise.models.agents.linear import FastLinear


@pytest.mark.parametrize("shape", [(5,), (7, 5), (3, 4, 5), (0, 5)])
def test_outputs_and_gradients_equal_those_of_the_plain_layer(shape):
    torch.manual_seed(0)
    fast, plain = FastLinear(5, 3).double(), nn.Linear(5, 3).double()
    plain.load_state_dict(fast.state_dict())
    x = torch.randn(shape, dtype=torch.float64)
    found = []
    for layer in (fast, plain):
        given = copy.deepcopy(x).requires_grad_()
        output = layer(given)
        output.square().sum().backward()
        found.append((output, given.grad, layer.weight.grad, layer.bias.grad))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-12, atol=1e-12)


def test_the_gradient_of_the_weights_is_the_product_that_is_fast():
    """By its layout: that of the transposed product, `inputs` first."""
    gradients = {}
    for kind in (FastLinear, nn.Linear):
        layer = kind(2, 64)
        (weights,) = torch.autograd.grad(layer(torch.randn(8, 2)).sum(), [layer.weight])
        gradients[kind] = weights.stride()
    assert gradients == {FastLinear: (1, 64), nn.Linear: (2, 1)}
