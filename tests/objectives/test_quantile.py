"""The quantile Huber loss against two plain loops, and where its least value lies."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.quantile import quantile_huber


def by_loops(quantiles, target, levels, kappa):
    """The definition, pair by pair."""
    found = []
    for row in range(len(quantiles)):
        total = 0.0
        for i in range(quantiles.shape[1]):
            for j in range(target.shape[1]):
                u = float(target[row, j] - quantiles[row, i])
                huber = 0.5 * u * u if abs(u) <= kappa else kappa * (abs(u) - 0.5 * kappa)
                total += abs(float(levels[row, i]) - (1.0 if u < 0 else 0.0)) * huber / kappa
        found.append(total / target.shape[1])
    return torch.tensor(found)


@given(
    rows=st.integers(1, 4),
    own=st.integers(1, 5),
    others=st.integers(1, 6),
    kappa=st.sampled_from([0.5, 1.0, 3.0]),
    seed=st.integers(0, 999),
)
def test_it_is_the_double_loop(rows, own, others, kappa, seed):
    draw = torch.Generator().manual_seed(seed)
    quantiles = 3 * torch.randn(rows, own, generator=draw, dtype=torch.float64)
    target = 3 * torch.randn(rows, others, generator=draw, dtype=torch.float64)
    levels = torch.rand(rows, own, generator=draw, dtype=torch.float64)
    found = quantile_huber(quantiles, target, levels=levels, kappa=kappa)
    torch.testing.assert_close(
        found, by_loops(quantiles, target, levels, kappa).double(), atol=1e-6, rtol=1e-6
    )


def test_its_least_value_is_at_the_quantiles():
    """Descent on samples of a skewed distribution ends at its empirical quantiles."""
    target = torch.randn(1, 2000).exp()
    levels = torch.tensor([[0.1, 0.5, 0.9]])
    quantiles = torch.ones(1, 3, requires_grad=True)
    descent = torch.optim.Adam([quantiles], lr=0.05)
    for _ in range(400):
        descent.zero_grad()
        quantile_huber(quantiles, target, levels=levels, kappa=0.02).sum().backward()
        descent.step()
    wanted = target[0].quantile(levels[0])
    torch.testing.assert_close(quantiles.detach()[0], wanted, atol=0.06, rtol=0.03)


def test_swapped_axes_would_show():
    """The planted fault: levels that belong to the targets."""
    quantiles, target = torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    levels = torch.tensor([[0.1, 0.3]])
    assert quantile_huber(quantiles, target, levels=levels).item() == torch.tensor(0.4 * 0.5).item()
    low, high = (quantile_huber(quantiles, target, levels=torch.full((1, 2), level)) for level in (0.1, 0.9))
    assert low < high
