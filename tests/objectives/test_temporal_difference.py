"""Targets against loops over rows, and the bias that a plain maximum would bring."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.temporal_difference import double_q_value, gather_actions, td_target


@given(rows=st.integers(1, 6), quantiles=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_target_is_a_reward_and_what_follows_unless_it_ended(rows, quantiles, seed):
    draw = torch.Generator().manual_seed(seed)
    reward, following = torch.randn(rows, generator=draw), torch.randn(rows, quantiles, generator=draw)
    discount = torch.rand(rows, generator=draw) * (torch.rand(rows, generator=draw) < 0.7)
    found = td_target(reward, discount, next_value=following)
    for row in range(rows):
        for column in range(quantiles):
            assert found[row, column] == reward[row] + discount[row] * following[row, column]
    assert torch.equal(td_target(reward, discount, next_value=following[:, 0]), found[:, 0])


def test_what_follows_an_end_is_not_even_multiplied():
    nothing = torch.tensor([float("nan"), float("inf")])
    found = td_target(torch.tensor([1.0, -5.0]), torch.zeros(2), next_value=nothing)
    assert found.tolist() == [1.0, -5.0]


def test_a_target_has_no_gradient():
    following = torch.ones(3, requires_grad=True)
    assert not td_target(torch.ones(3), torch.ones(3), next_value=following).requires_grad


@given(
    rows=st.integers(1, 5), quantiles=st.integers(1, 4), actions=st.integers(1, 5), seed=st.integers(0, 99)
)
def test_double_value_is_one_network_valuing_anothers_choice(rows, quantiles, actions, seed):
    draw = torch.Generator().manual_seed(seed)
    target = torch.randn(rows, quantiles, actions, generator=draw)
    choosing = torch.randn(rows, actions, generator=draw)
    found = double_q_value(target, choosing)
    for row in range(rows):
        best = max(range(actions), key=lambda action: choosing[row, action].item())
        assert torch.equal(found[row], target[row, :, best])
    assert torch.equal(double_q_value(target[:, 0], choosing), found[:, 0])


def test_it_does_not_overvalue_what_is_all_alike():
    """25 actions worth nothing, seen through noise: the maximum says about 2, the double value about 0."""
    first, second = torch.randn(2, 4000, 25)
    assert first.amax(-1).mean() > 1.8
    assert double_q_value(first, second).mean().abs() < 0.1


def test_the_best_mean_differs_from_the_best_of_every_quantile():
    """The maximum within each quantile is the value of an action that does not exist."""
    quantiles = torch.tensor([[[0.0, 1.0], [3.0, 1.0]]])
    assert double_q_value(quantiles, quantiles.mean(1)).mean() == 1.5
    assert quantiles.amax(-1).mean() == 2.0


def test_chosen_values_of_batches_of_all_kinds():
    values, action = torch.arange(12.0).view(2, 3, 2), torch.tensor([1, 0])
    assert gather_actions(values, action).tolist() == [[1.0, 3.0, 5.0], [6.0, 8.0, 10.0]]
