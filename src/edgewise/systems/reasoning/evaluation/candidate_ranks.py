"""Ranks of true candidates among false ones, and metrics on them: MRR, hits, AUC-PR."""

from __future__ import annotations

import torch
from torch import Tensor

HITS = (1, 3, 10)
"""The k of hits@k."""


def ranks(scores: Tensor, exists: Tensor) -> Tensor:
    """Compute the rank of the first candidate of each list, `[Q]`, from 1; ties count half.

    Args:
        scores: `[Q, K]`; higher is better.
        exists: `[Q, K]` bool, which candidates exist; the first always does.
    """
    true, others, present = scores[:, :1], scores[:, 1:], exists[:, 1:]
    better = ((others > true) & present).sum(-1)
    equal = ((others == true) & present).sum(-1)
    return 1.0 + better + equal / 2


def mean_reciprocal_rank(rank: Tensor) -> float:
    """Return the mean of 1 / rank."""
    return float(rank.reciprocal().mean())


def hits(rank: Tensor, at: int) -> float:
    """Return the share of ranks of at most `at`."""
    return float((rank <= at).double().mean())


def area_under_precision_recall(scores: Tensor, labels: Tensor) -> float:
    """Compute the average precision of `scores [N]` for `labels [N]` bool.

    It is the sum over thresholds of precision times the gain in recall. Equal scores share a threshold.
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
