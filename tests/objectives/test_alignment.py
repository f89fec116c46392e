"""Signals and masks take the shape of values, per world or per agent, or are refused with both shapes."""

import pytest
import torch

from edgewise.objectives.alignment import expand_agent_mask, match_shape


@pytest.mark.parametrize(
    ("signal", "value"),
    [
        ((4, 1), (4,)),
        ((4, 1), (4, 1)),
        ((4,), (4, 1)),
        ((4, 1), (4, 3, 1)),
        ((4, 3, 1), (4, 3)),
        ((4, 3), (4, 3, 1)),
    ],
)
def test_a_signal_takes_the_shape_of_the_values(signal, value):
    given = torch.arange(4.0).view(4, *[1] * (len(signal) - 1)).expand(signal)
    found = match_shape(given, torch.zeros(value), batch_dims=1, name="reward")
    assert found.shape == value
    assert torch.equal(found.reshape(4, -1)[:, 0], torch.arange(4.0))


def test_shapes_that_do_not_fit_are_both_named():
    with pytest.raises(
        ValueError, match=r"reward has shape \(3, 1\) in each state, which does not fit \(1,\)"
    ):
        match_shape(torch.zeros(4, 3, 1), torch.zeros(4, 1), batch_dims=1, name="reward")


def test_a_mask_of_agents_is_none_for_values_of_worlds():
    mask = torch.tensor([[True, False, True], [False, True, True]])
    assert expand_agent_mask(mask, torch.zeros(2, 1), batch_dims=1) is None
    assert expand_agent_mask(None, torch.zeros(2, 3), batch_dims=1) is None
    assert torch.equal(expand_agent_mask(mask, torch.zeros(2, 3, 1), batch_dims=1).squeeze(-1), mask)
