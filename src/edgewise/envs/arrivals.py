"""Random counts of arrivals or departures per time step, with a fixed number of draws from the generator.

The number of draws must not depend on the rates: otherwise a change of rates in one world would shift the
random numbers of the others. `torch.poisson` draws a varying number, so counts are sampled here by inversion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

LawName = Literal["bernoulli", "poisson", "fixed", "normal"]


@dataclass(frozen=True)
class Law:
    """A probability law of counts per time step with a given mean.

    Args:
        name: `bernoulli` (0 or 1), `poisson`, `fixed` (the rate itself) or `normal` (rounded and clipped at
            zero).
        deviation: standard deviation of `normal` before rounding.
        highest_rate: largest rate that `poisson` is called with; it sets the number of terms.

    Example:
        >>> law = Law("bernoulli")
        >>> law(torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(0))
        tensor([0., 1.])
    """

    name: LawName
    deviation: float = 1.0
    highest_rate: float = 1.0

    def __call__(self, rate: Tensor, generator: torch.Generator | None) -> Tensor:
        """Sample the counts of one time step, `[*B]` float like `rate`."""
        if self.name == "fixed":
            return rate.clone()
        if self.name == "normal":
            noise = torch.randn(rate.shape, generator=generator, device=rate.device, dtype=rate.dtype)
            return (rate + self.deviation * noise).round().clamp_min(0.0)
        uniform = torch.rand(rate.shape, generator=generator, device=rate.device, dtype=rate.dtype)
        if self.name == "bernoulli":
            return (uniform < rate).to(rate.dtype)
        return poisson_count(uniform, rate, terms=poisson_terms(self.highest_rate))


def poisson_terms(highest_rate: float) -> int:
    """Return how many terms a Poisson table needs so that the rest is below single precision."""
    return math.ceil(highest_rate + 7.0 * math.sqrt(highest_rate) + 9.0)


def poisson_count(uniform: Tensor, rate: Tensor, *, terms: int) -> Tensor:
    """Return the first Poisson count whose cumulative probability exceeds `uniform`, all `[*B]`.

    The terms are summed in every call, for rates that change; `poisson_table` is for constant rates.
    """
    term = torch.exp(-rate.double())
    total = term.clone()
    count = torch.zeros_like(uniform)
    for number in range(1, terms + 1):
        count += uniform >= total
        term *= rate / number
        total += term
    return count


def poisson_table(rate: Tensor, *, terms: int) -> Tensor:
    """Compute the cumulative probabilities P(x ≤ 0..terms-1) of Poisson laws, `[*B]` to `[*B, terms]`."""
    counts = torch.arange(terms, device=rate.device, dtype=torch.float64)
    mean = rate.to(torch.float64).unsqueeze(-1)
    log_probability = torch.xlogy(counts, mean) - mean - torch.lgamma(counts + 1.0)
    return log_probability.exp().cumsum(-1).to(rate.dtype)


def flatten_table(table: Tensor) -> Tensor:
    """Concatenate the rows of `table` `[R, T]` into one increasing sequence `[R * T]`.

    Row r is shifted to the interval from r to r + 1. So a count of row r is found by one binary search for
    `r + uniform`, without copying rows.
    """
    row = torch.arange(len(table), device=table.device, dtype=torch.float64)
    return (row.unsqueeze(-1) + table.double().clamp_max(1.0)).flatten()


def invert_row(uniform: Tensor, row: Tensor, *, flat_table: Tensor, terms: int) -> Tensor:
    """Return the first count whose cumulative probability exceeds `uniform` in row `row`; all `[*B]`.

    Args:
        uniform: in [0, 1).
        row: int64.
        flat_table: `[R * T]`, from `flatten_table`.
        terms: T.
    """
    found = torch.searchsorted(flat_table, row + uniform.double(), right=True)
    return (found - row * terms).to(uniform.dtype)
