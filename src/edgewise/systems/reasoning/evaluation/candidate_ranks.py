"""Ranks of true candidates among false ones, and what is said of them: MRR, hits, the area under a curve."""

from __future__ import annotations

import torch
from torch import Tensor

HITS = (1, 3, 10)
"""The ranks up to which hits are counted."""


def ranks(scores: Tensor, exists: Tensor) -> Tensor:
    """The rank of the first candidate of each list, `[Q]`, from 1, ties counting half.

    Args:
        scores: `[Q, K]`; the higher the better.
        exists: `[Q, K]`, which candidates there are; the first always is.
    """
    true, others, there = scores[:, :1], scores[:, 1:], exists[:, 1:]
    better = ((others > true) & there).sum(-1)
    equal = ((others == true) & there).sum(-1)
    return 1.0 + better + equal / 2


def mean_reciprocal_rank(rank: Tensor) -> float:
    """The mean of 1 / rank."""
    return float(rank.reciprocal().mean())


def hits(rank: Tensor, at: int) -> float:
    """The share of ranks that are at most `at`."""
    return float((rank <= at).double().mean())


def area_under_precision_recall(scores: Tensor, labels: Tensor) -> float:
    """Average precision of `scores [N]` for `labels [N]` bool, equal scores entering together.

    Precision at each threshold, weighted by the recall gained there.
    """
    if not labels.any():
        raise ValueError("precision needs at least one positive label")
    values, order = torch.sort(scores.double(), descending=True)
    hit = labels[order].double().cumsum(0)
    seen = torch.arange(1, len(values) + 1, dtype=torch.float64)
    last_of_equals = torch.cat((values[1:] != values[:-1], torch.ones(1, dtype=torch.bool)))
    hit, seen = hit[last_of_equals], seen[last_of_equals]
    gained = torch.diff(hit, prepend=torch.zeros(1, dtype=torch.float64))
    return float((gained / hit[-1] * (hit / seen)).sum())
