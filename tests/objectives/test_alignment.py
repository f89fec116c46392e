"""Signals and masks take the shape of values, per world or per agent, or are refused with both shapes."""

import pytest
import torch
from tensordict import TensorDict

from edgewise.objectives.alignment import expand_agent_mask, match_shape, with_agent_done


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


def test_an_agent_is_done_with_its_world_or_by_itself_and_the_batch_is_left_alone():
    ended = torch.tensor([[True, False], [False, False]])
    following = {
        "reward": torch.zeros(2, 2, 1),
        "done": torch.tensor([[False], [True]]),
        "terminated": torch.tensor([[False], [False]]),
        "agents": {"terminated": ended},
    }
    batch = TensorDict({"next": following}, [2])
    found = with_agent_done(batch)["next"]
    assert found["done"].squeeze(-1).tolist() == [[True, False], [True, True]]
    assert found["terminated"].squeeze(-1).tolist() == [[True, False], [False, False]]
    assert batch["next", "done"].shape == (2, 1)
