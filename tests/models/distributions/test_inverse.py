"""Sampling by the inverse of the distribution function is exact and never illegal."""

import torch
from scipy import stats

from edgewise.models.distributions.masked import InverseCategorical, MaskedCategorical


def test_frequencies_are_the_probabilities():
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.0, 1.0]])
    mask = torch.tensor([[True, True, False, True, True]])
    dist = InverseCategorical(logits, mask)
    drawn = dist.sample((40_000,), generator=torch.Generator().manual_seed(0)).reshape(-1)
    counts = torch.bincount(drawn, minlength=5)
    assert counts[2] == 0
    kept = [0, 1, 3, 4]
    probability = dist.probs[0, kept].double()
    expected = probability / probability.sum() * counts.sum()
    assert stats.chisquare(counts[kept].numpy(), expected.numpy()).pvalue > 1e-3


def test_no_sample_is_illegal():
    generator = torch.Generator().manual_seed(1)
    logits = 30 * torch.randn(20_000, 50, generator=generator)
    mask = torch.rand(20_000, 50, generator=generator) < 0.1
    mask[:, -1] |= ~mask.any(-1)
    drawn = InverseCategorical(logits, mask).sample((50,), generator=generator)
    assert mask.expand(50, -1, -1).gather(-1, drawn.unsqueeze(-1)).all()


def test_extreme_levels_choose_possible_ends(monkeypatch):
    mask = torch.tensor([[False, True, True, False]])
    dist = InverseCategorical(torch.zeros(1, 4), mask)
    for level, expected in ((0.0, 1), (1.0, 2)):
        monkeypatch.setattr(torch, "rand", lambda *args, level=level, **kwargs: torch.tensor([level]))
        assert dist.sample().item() == expected


def test_density_and_entropy_are_those_of_the_masked_categorical():
    generator = torch.Generator().manual_seed(2)
    logits, mask = torch.randn(64, 9, generator=generator), torch.rand(64, 9, generator=generator) < 0.6
    mask[:, 0] = True
    ours, other = InverseCategorical(logits, mask), MaskedCategorical(logits, mask)
    torch.testing.assert_close(ours.entropy(), other.entropy())
    choice = ours.sample(generator=generator)
    torch.testing.assert_close(ours.log_prob(choice), other.log_prob(choice))
    assert torch.equal(ours.mode, other.mode)
