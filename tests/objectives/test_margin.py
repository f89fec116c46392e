"""The large margin of DQfD by its definition."""

import torch

from edgewise.objectives.margin import large_margin


def test_others_must_be_lower_by_the_margin_and_the_expert_by_none():
    values = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.5, 3.0], [1.0, 2.0, 3.0]])
    loss = large_margin(values, torch.tensor([2, 2, 0]), margin=0.8)
    torch.testing.assert_close(loss, torch.tensor([0.0, 0.3, 2.8]))
