"""Categorical actions: against torch's own distribution, under masks, and where nothing is allowed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Categorical

from edgewise.models.distributions.masked import (
    JointCategorical,
    MaskedCategorical,
    check_mask,
    gumbel_argmax,
)

sizes = st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(0, 1000))


def rows_and_mask(rows, choices, seed):
    """Logits, and a mask with one allowed choice per row at least."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, choices, generator=generator) * 3
    mask = torch.rand(rows, choices, generator=generator) < 0.5
    keep = torch.randint(0, choices, (rows, 1), generator=generator)
    return logits, mask.scatter(-1, keep, True)


@given(sizes)
def test_equals_torch_categorical_over_the_allowed_choices(size):
    logits, mask = rows_and_mask(*size)
    dist = MaskedCategorical(logits, mask)
    for row in range(len(logits)):
        allowed = mask[row].nonzero().squeeze(-1)
        reference = Categorical(logits=logits[row, allowed])
        torch.testing.assert_close(dist.probs[row, allowed], reference.probs)
        torch.testing.assert_close(dist.entropy()[row], reference.entropy(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(
            MaskedCategorical(logits[row], mask[row]).log_prob(allowed),
            reference.log_prob(torch.arange(len(allowed))),
        )
        assert dist.mode[row] == allowed[reference.probs.argmax()]
    assert (dist.probs[~mask] == 0).all()


@given(sizes)
def test_draws_are_allowed_and_gradients_finite(size):
    logits, mask = rows_and_mask(*size)
    logits.requires_grad_()
    dist = MaskedCategorical(logits, mask)
    draws = dist.sample((20,))
    assert mask.expand(20, *mask.shape).gather(-1, draws.unsqueeze(-1)).all()
    (dist.log_prob(draws).sum() + dist.entropy().sum()).backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[~mask] == 0).all()


def test_draws_have_their_probabilities():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 9.0])
    mask = torch.tensor([True, True, True, True, False])
    dist = MaskedCategorical(logits, mask)
    share = torch.bincount(dist.sample((40_000,)), minlength=5) / 40_000
    torch.testing.assert_close(share, dist.probs, rtol=0, atol=0.01)
    assert share[4] == 0


def test_a_generator_makes_draws_repeat():
    logits = torch.randn(50, 6)
    first, second = (gumbel_argmax(logits, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    state = torch.get_rng_state()
    MaskedCategorical(logits).sample(generator=torch.Generator().manual_seed(3))
    assert torch.equal(state, torch.get_rng_state())


def test_a_forbidden_choice_is_all_but_impossible():
    dist = MaskedCategorical(torch.zeros(3), torch.tensor([True, False, True]))
    assert dist.log_prob(torch.tensor(1)) < -1e30


def test_rows_not_counted_do_nothing_at_no_cost():
    logits = torch.randn(2, 3, 4, requires_grad=True)
    counted = torch.tensor([[True, False, True], [False, False, True]])
    dist = MaskedCategorical(logits, counted=counted)
    action = dist.sample()
    assert (action[~counted] == 0).all()
    assert (dist.log_prob(action)[~counted] == 0).all()
    assert (dist.entropy()[~counted] == 0).all()
    (dist.log_prob(action).sum() + dist.entropy().sum()).backward()
    assert (logits.grad[~counted] == 0).all()
    assert (logits.grad[counted] != 0).any()


def test_joint_categorical_adds_up_its_counted_rows():
    logits, counted = torch.randn(2, 5, 3), torch.rand(2, 5) < 0.6
    each, joint = MaskedCategorical(logits, counted=counted), JointCategorical(logits, counted=counted)
    action = joint.sample()
    assert joint.batch_shape == (2,)
    assert joint.event_shape == (5,)
    torch.testing.assert_close(joint.log_prob(action), each.log_prob(action).sum(-1))
    torch.testing.assert_close(joint.entropy(), each.entropy().sum(-1))


def test_an_empty_mask_names_the_world():
    mask = torch.ones(4, 3, dtype=torch.bool)
    check_mask(mask)
    mask[2] = False
    with pytest.raises(ValueError, match=r"^world 2 has no allowed node: .*action_mask is all false"):
        check_mask(mask)
    with pytest.raises(ValueError, match=r"^world \[1, 0\] has no allowed node"):
        check_mask(mask.view(2, 2, 3))
    with pytest.raises(ValueError, match=r"^the world has no allowed node"):
        check_mask(torch.zeros(3, dtype=torch.bool))


def test_an_empty_row_names_world_and_row_unless_it_is_not_needed():
    mask = torch.ones(2, 3, 4, dtype=torch.bool)
    mask[1, 2] = False
    needed = torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"^row 2 of world 1 has no allowed action"):
        check_mask(mask, needed=needed, what="action")
    needed[1, 2] = False
    check_mask(mask, needed=needed, what="action")
