"""Loss functions of knowledge-graph embeddings, as pure functions on scores."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def one_vs_all(scores: Tensor, targets: Tensor) -> Tensor:
    """Compute the cross entropy over all entities, `[m, E]` and `[m]` → scalar (Lacroix et al., 2018)."""
    return F.cross_entropy(scores, targets)


def shared_negatives(positives: Tensor, negatives: Tensor, *, same: Tensor, population: int) -> Tensor:
    """Compute the cross entropy over the true entity and negatives shared by the batch → scalar.

    The k sampled scores are raised by log((population − 1) / k), so that the expected sum of exponentials
    over the sample equals the sum over all other entities.

    Args:
        positives: `[m]` scores of the true entities.
        negatives: `[m, k]` scores of uniformly sampled entities.
        same: bool `[m, k]`, where the sample is the true entity.
        population: number of entities.
    """
    raised = negatives + torch.log(
        (population - 1) / (negatives.shape[1] - same.sum(1, keepdim=True)).clamp(min=1)
    )
    others = raised.masked_fill(same, -torch.inf).logsumexp(1)
    return F.softplus(others - positives).mean()


def n3(*factors: Tensor) -> Tensor:
    """Compute N3 regularisation, Σ |x|³ of moduli `[m, d]` per question → scalar (Lacroix et al., 2018)."""
    total = torch.stack([factor.abs().pow(3).sum() for factor in factors]).sum()
    return total / factors[0].shape[0]


def dura(given: Tensor, relation: Tensor, answer: Tensor) -> Tensor:
    """Compute DURA regularisation of moduli, each `[m, d]`, → scalar (Zhang, Cai and Wang, 2020).

    ½ (|given|² + |answer|²) + 1½ (|given · relation|² + |answer · relation|²), the mean over questions.
    """
    entities = given.square() + answer.square()
    return (entities * (0.5 + 1.5 * relation.square())).sum() / given.shape[0]
