"""Ragged choices: equal to the padded ones, choice for choice."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.models.distributions.masked import MaskedCategorical
from edgewise.models.distributions.ragged import RaggedCategorical

counts = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def both(counts, seed=0, scale=3.0):
    """The same choices as a ragged and as a padded distribution."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor(counts)
    segment = torch.repeat_interleave(torch.arange(len(counts)), counts)
    logits = torch.randn(len(segment), generator=generator) * scale
    mask = torch.arange(int(counts.max())) < counts.unsqueeze(-1)
    padded = torch.zeros(mask.shape).masked_scatter(mask, logits)
    ragged = RaggedCategorical(logits, segment, num_segments=len(counts))
    return ragged, MaskedCategorical(padded, mask), counts


@given(counts, st.integers(0, 1000), st.sampled_from([1.0, 100.0]))
def test_equals_the_padded_distribution(counts, seed, scale):
    ragged, padded, _ = both(counts, seed, scale)
    assert torch.equal(ragged.mode, padded.mode)
    torch.testing.assert_close(ragged.entropy(), padded.entropy(), rtol=1e-4, atol=1e-5)
    choice = padded.sample()
    torch.testing.assert_close(ragged.log_prob(choice), padded.log_prob(choice))


@given(counts, st.integers(0, 1000))
def test_draws_are_places_in_their_set(counts, seed):
    ragged, _, counts = both(counts, seed)
    draws = ragged.sample((20,))
    assert draws.shape == (20, len(counts))
    assert ((draws >= 0) & (draws < counts)).all()


def test_draws_have_their_probabilities():
    ragged, padded, _ = both([3, 1, 4], scale=1.0)
    draws = ragged.sample((20_000,))
    share = torch.nn.functional.one_hot(draws, 4).float().mean(0)
    torch.testing.assert_close(share, padded.probs, rtol=0, atol=0.015)


def test_gradients_equal_the_padded_ones():
    logits = torch.randn(5, requires_grad=True)
    segment = torch.tensor([0, 0, 0, 1, 1])
    choice = torch.tensor([2, 0])
    RaggedCategorical(logits, segment, num_segments=2).log_prob(choice).sum().backward()
    ours, logits.grad = logits.grad, None
    rows = torch.stack((logits[:3], torch.cat((logits[3:], torch.full((1,), -1e9)))))
    rows.log_softmax(-1).gather(-1, choice.unsqueeze(-1)).sum().backward()
    torch.testing.assert_close(ours, logits.grad)


def test_a_place_outside_the_set_is_all_but_impossible():
    ragged, _, _ = both([2, 3])
    assert ragged.log_prob(torch.tensor([2, 2]))[0] < -1e30


def test_an_empty_set_names_the_world():
    with pytest.raises(ValueError, match=r"^world 1 has no allowed choice"):
        RaggedCategorical(torch.zeros(3), torch.tensor([0, 2, 2]), num_segments=3)
