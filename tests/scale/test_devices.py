"""Constants are made once for each device and type."""

import torch

from edgewise.scale.devices import constant


def test_equal_numbers_of_another_type_or_device_are_other_constants():
    like = torch.zeros(1)
    whole, real = constant((1, 0), like), constant((1.0, 0.0), like, dtype=torch.float32)
    assert (whole.dtype, real.dtype) == (torch.int64, torch.float32)
    assert constant((1, 0), torch.zeros(1, device="meta")).device.type == "meta"
    assert constant((1, 0), torch.ones(3)) is whole


def test_a_constant_made_in_inference_mode_can_be_learned_with():
    with torch.inference_mode():
        factor = constant((2.0, 5.0), torch.zeros(1), dtype=torch.float32)
    weight = torch.ones(2, requires_grad=True)
    (weight * factor).sum().backward()
    assert weight.grad.tolist() == [2.0, 5.0]
