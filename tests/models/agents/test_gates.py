"""A layer of gated features is the same with closed gates left out, and has the same gradients."""

import numpy as np
import pytest
import torch
from torch import nn

from edgewise.models.agents import gates
from edgewise.models.agents.gates import OpenGates, gated, leaves_out

CASES = [(1024, 0.5, True), (16, 0.5, False), (1024, 0.9, False)]
SHAPES = [(512,), (4, 128), (2, 3, 100)]


def case(shape, *, inputs=129, outputs=7, quantiles=5):
    torch.manual_seed(0)
    layer = nn.Linear(inputs, outputs).double()
    h = torch.randn(*shape, inputs, dtype=torch.float64)
    before = torch.randn(quantiles, inputs, dtype=torch.float64)
    before[0] = -1.0  # no gate is open
    before[1] = 1.0  # all are
    return layer, h, before


def outputs_and_gradients(layer, h, before):
    """Differentiate a function of the outputs with respect to all inputs, through the ReLU of the gates."""
    h, before = h.clone().requires_grad_(), before.clone().requires_grad_()
    found = gated(layer, h, gate=before.relu())
    weights = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
    inputs = [h, before, layer.weight, layer.bias]
    return found, *torch.autograd.grad((found.sin() * weights).sum(), inputs)


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_gradients_do_not_depend_on_how_they_are_computed(monkeypatch, shape):
    layer, h, before = case(shape)
    results = {}
    for name, size in (("left out", 0), ("weights", 1 << 60)):
        monkeypatch.setattr(gates, "SELECT_FROM", size)
        assert leaves_out(h, before.relu(), outputs=7) is (name == "left out")
        results[name] = outputs_and_gradients(layer, h, before)
    plain = layer(h.unsqueeze(-2) * before.relu())
    np.testing.assert_allclose(results["left out"][0].detach(), plain.detach(), rtol=1e-12, atol=1e-12)
    for one, other in zip(*results.values(), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_finite_differences(monkeypatch):
    monkeypatch.setattr(gates, "SELECT_FROM", 0)
    layer, h, before = case((3,), inputs=6, outputs=2, quantiles=4)

    def function(h, before, weight, bias):
        return torch.func.functional_call(
            Applied(layer), {"layer.weight": weight, "layer.bias": bias}, (h, before)
        )

    inputs = (h, before, layer.weight.detach(), layer.bias.detach())
    assert torch.autograd.gradcheck(function, tuple(each.clone().requires_grad_() for each in inputs))


class Applied(nn.Module):
    """`gated` of its layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, h, before):
        return gated(self.layer, h, gate=before.relu())


def test_rows_with_gates_of_their_own_are_multiplied_themselves():
    layer, h, before = case((4, 8))
    gate = before.relu().expand(4, 8, *before.shape) * torch.rand(4, 8, 1, 1)
    np.testing.assert_allclose(
        gated(layer, h, gate=gate)[2, 5, 3].detach(), layer(h[2, 5] * gate[2, 5, 3]).detach(), rtol=1e-12
    )


def test_closed_gates_are_left_out_of_the_products(monkeypatch):
    layer, h, before = case((512,))
    sizes = []
    multiply = torch.mm

    def counted(left, right, *, out):
        sizes.append(left.shape[1])
        return multiply(left, right, out=out)

    monkeypatch.setattr(torch, "mm", counted)
    OpenGates.apply(h, layer.weight, before.relu())
    assert sizes == (before > 0).sum(1).tolist()


@pytest.mark.parametrize(("rows", "share", "expected"), CASES)
def test_few_rows_and_gates_that_are_mostly_open_are_not_worth_it(rows, share, expected):
    gate = (torch.arange(8 * 100).view(8, 100) < share * 800).float()
    assert leaves_out(torch.zeros(rows, 100), gate, outputs=256) is expected
