"""Centred ranks: against sorting, under ties, and what they do not depend on."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.objectives.ranks import centred_ranks


@given(values=st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_they_are_means_over_all_orders_of_equal_values(values):
    given_values = torch.tensor(values, dtype=torch.float32).unsqueeze(1)
    found = centred_ranks(given_values).squeeze(1)
    ordered = sorted(values)
    for value, rank in zip(values, found.tolist(), strict=True):
        places = [place for place, other in enumerate(ordered) if other == value]
        expected = sum(places) / len(places) / max(len(values) - 1, 1) - (0.5 if len(values) > 1 else 0.0)
        assert abs(rank - expected) < 1e-6


def test_scale_and_outliers_change_nothing():
    values = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(centred_ranks(values), centred_ranks(100 * values.exp()))
    assert torch.allclose(centred_ranks(values).sum(0), torch.zeros(4), atol=1e-6)
