"""What embeddings of a knowledge graph are trained to make small, as pure functions on scores."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def one_vs_all(scores: Tensor, targets: Tensor) -> Tensor:
    """Cross entropy of the right entity among all, `[m, E]` and `[m]` → scalar (Lacroix et al., 2018)."""
    return F.cross_entropy(scores, targets)


def shared_negatives(positives: Tensor, negatives: Tensor, *, same: Tensor, population: int) -> Tensor:
    """Cross entropy of the right entity among itself and a sample that the whole batch shares → scalar.

    The sample stands for all other entities: its k scores are raised by log((population − 1) / k), so that
    the sum over it has the expectation of the sum over all of them.

    Args:
        positives: `[m]` scores of the right entities.
        negatives: `[m, k]` scores of the sample, drawn uniformly.
        same: bool `[m, k]`, where the sample holds the right entity itself.
        population: how many entities there are.
    """
    raised = negatives + torch.log(
        (population - 1) / (negatives.shape[1] - same.sum(1, keepdim=True)).clamp(min=1)
    )
    others = raised.masked_fill(same, -torch.inf).logsumexp(1)
    return F.softplus(others - positives).mean()


def self_adversarial(positives: Tensor, negatives: Tensor, *, same: Tensor, temperature: float) -> Tensor:
    """Logistic loss with negatives weighted by a softmax of their own scores → scalar (Sun et al., 2019).

    Args:
        positives: `[m]` scores of the right entities.
        negatives: `[m, k]` scores of wrong ones.
        same: bool `[m, k]`, where one of them is the right entity after all; at least one in a row is not.
        temperature: how much higher scores weigh more.
    """
    weights = (negatives.detach() * temperature).masked_fill(same, -torch.inf).softmax(1)
    wrong = (weights * F.logsigmoid(-negatives)).sum(1)
    return -(F.logsigmoid(positives) + wrong).mean() / 2


def n3(*factors: Tensor) -> Tensor:
    """Σ |x|³ of the moduli `[m, d]` of the vectors in use, per question → scalar (Lacroix et al., 2018)."""
    total = torch.stack([factor.abs().pow(3).sum() for factor in factors]).sum()
    return total / factors[0].shape[0]
