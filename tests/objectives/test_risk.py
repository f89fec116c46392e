"""Risk: the mean of a tail by sorting, and a share that shrinks as objects come near."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.models.agents.quantile import even_levels, random_levels
from edgewise.objectives.risk import adaptive_tail_share, scale_levels, tail_mean


@given(alpha=st.floats(0.02, 1.0), seed=st.integers(0, 999))
def test_the_mean_of_a_tail_is_that_of_the_worst_of_many_draws(alpha, seed):
    """Against a long list of returns, of which the worst share is kept."""
    draw = torch.Generator().manual_seed(seed)
    support = torch.linspace(-15, 60, 11, dtype=torch.float64)
    counts = torch.randint(0, 50, (11,), generator=draw)
    counts[3] += 1
    returns = support.repeat_interleave(counts).repeat_interleave(20)
    kept = alpha * len(returns)
    weight = (kept - torch.arange(len(returns), dtype=torch.float64)).clamp(0, 1)
    wanted = (returns * weight).sum() / kept
    probability = (counts.double() / counts.sum()).view(1, 1, 11)
    share = torch.tensor([alpha], dtype=torch.float64)
    torch.testing.assert_close(tail_mean(probability, support, share).squeeze(), wanted)


def test_all_of_a_distribution_is_its_mean():
    probability, support = torch.rand(2, 3, 5).softmax(-1), torch.linspace(0, 4, 5)
    plain = (probability * support).sum(-1)
    torch.testing.assert_close(tail_mean(probability, support, None), plain)
    torch.testing.assert_close(tail_mean(probability, support, torch.ones(2)), plain)


def test_squeezed_levels_average_the_tail_of_a_known_distribution():
    """Quantiles of the uniform distribution are their levels: the worst share has the mean share / 2."""
    levels = even_levels(torch.zeros(3), 64)
    share = torch.tensor([1.0, 0.5, 0.1])
    torch.testing.assert_close(scale_levels(levels, share).mean(-1), share / 2)
    assert scale_levels(levels, None) is levels


def test_the_share_grows_with_the_distance_between_its_bounds():
    distance = torch.tensor([-1.0, 0.5, 5.0, 20.0, torch.inf])
    share = adaptive_tail_share(distance, smallest=0.1, reach=10.0)
    torch.testing.assert_close(share, torch.tensor([0.1, 0.1, 0.5, 1.0, 1.0]))


def test_levels_are_even_or_random_in_the_unit_interval():
    like = torch.zeros(2, 3, 9)
    assert even_levels(like, 4).tolist() == [0.125, 0.375, 0.625, 0.875]
    drawn = torch.stack([random_levels(like, 4) for _ in range(2000)])
    assert torch.equal((drawn * 4).floor(), torch.arange(4.0).expand(2000, 4))
    torch.testing.assert_close(drawn.mean(0), even_levels(like, 4), atol=0.01, rtol=0)
    assert (drawn.std(0) - 1 / (4 * 12**0.5)).abs().max() < 0.005
