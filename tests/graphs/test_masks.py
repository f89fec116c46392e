"""Masks without gaps are left out, and only where Python may ask."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from edgewise.graphs.masks import unless_all


@pytest.mark.parametrize("shape", [(), (3,), (2, 4), (0,), (3, 0)])
def test_a_mask_without_gaps_is_none(shape):
    assert unless_all(torch.ones(shape, dtype=torch.bool)) is None


def test_a_mask_with_a_gap_stays():
    mask = torch.tensor([[True, True], [True, False]])
    assert unless_all(mask) is mask
    assert unless_all(None) is None


def test_nothing_is_asked_on_another_device_or_in_compiled_code():
    with FakeTensorMode():
        mask = torch.ones(3, dtype=torch.bool)
        assert unless_all(mask) is mask
    mask = torch.ones(3, dtype=torch.bool, device="meta")
    assert unless_all(mask) is mask
    export = torch.export.export(Masked(), (torch.ones(3), torch.ones(3, dtype=torch.bool)), strict=False)
    filled = export.module()(torch.ones(3), torch.tensor([True, False, True]))
    assert filled.tolist() == [1.0, 0.0, 1.0]


class Masked(torch.nn.Module):
    def forward(self, values, mask):
        gaps = unless_all(mask)
        return values if gaps is None else values.masked_fill(~gaps, 0.0)
