"""The laws packets arrive and leave by; every draw takes the same share of the generator, whatever the rates.

That last point keeps worlds apart: a world whose rates change must not shift the random numbers of its
neighbours, as `torch.poisson` would, which draws as often as its rates ask.
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
    """A law of packets per slot with a given mean.

    Args:
        name: `bernoulli` (0 or 1), `poisson`, `fixed` (the rate itself) or `normal` (rounded, not below
            zero).
        deviation: standard deviation of `normal` before rounding.
        highest_rate: the largest rate `poisson` will be asked for; it sizes the table that is inverted.

    Example:
        >>> law = Law("bernoulli")
        >>> law(torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(0))
        tensor([0., 1.])
    """

    name: LawName
    deviation: float = 1.0
    highest_rate: float = 1.0

    def __call__(self, rate: Tensor, generator: torch.Generator | None) -> Tensor:
        """Packets of one slot, `[*B]` float like `rate`."""
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
    """How many values a Poisson table needs so that what lies beyond is too rare for single precision."""
    return math.ceil(highest_rate + 7.0 * math.sqrt(highest_rate) + 9.0)


def poisson_count(uniform: Tensor, rate: Tensor, *, terms: int) -> Tensor:
    """The first Poisson count whose cumulative probability exceeds `uniform`, all `[*B]`; term by term.

    For rates that change from call to call; `poisson_table` is for rates that stay.
    """
    term = torch.exp(-rate.double())
    total = term.clone()
    count = torch.zeros_like(uniform)
    for following in range(1, terms + 1):
        count += uniform >= total
        term *= rate / following
        total += term
    return count


def poisson_table(rate: Tensor, *, terms: int) -> Tensor:
    """Cumulative probabilities P(x ≤ 0..terms-1) of Poisson laws, `[*B]` to `[*B, terms]`."""
    counts = torch.arange(terms, device=rate.device, dtype=torch.float64)
    mean = rate.to(torch.float64).unsqueeze(-1)
    log_probability = torch.xlogy(counts, mean) - mean - torch.lgamma(counts + 1.0)
    return log_probability.exp().cumsum(-1).to(rate.dtype)


def end_to_end(table: Tensor) -> Tensor:
    """The rows of `table` `[R, T]` as one rising line `[R * T]`: row r runs from r to r + 1.

    A draw of row r is then found by one search for `r + uniform`, and rows need not be copied to where they
    are drawn from.
    """
    row = torch.arange(len(table), device=table.device, dtype=torch.float64)
    return (row.unsqueeze(-1) + table.double().clamp_max(1.0)).flatten()


def invert_row(uniform: Tensor, row: Tensor, *, line: Tensor, terms: int) -> Tensor:
    """The first count whose cumulative probability exceeds `uniform` in row `row` of a table; all `[*B]`.

    Args:
        uniform: in [0, 1).
        row: int64.
        line: `[R * T]`, from `end_to_end`.
        terms: T.
    """
    found = torch.searchsorted(line, row + uniform.double(), right=True)
    return (found - row * terms).to(uniform.dtype)
