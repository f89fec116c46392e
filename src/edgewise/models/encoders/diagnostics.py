"""Statistics of encoder layers: size of activations and logits, and entropy of attention."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.models.encoders.attention import Weights
from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch, SparseBatch


def activation_rms(h: Tensor, batch: GraphBatch) -> Tensor:
    """Compute the root mean square of the embeddings of real nodes, 0-d."""
    real = _real(batch).unsqueeze(-1)
    return (h.masked_fill(~real, 0.0).square().sum() / (real.sum().clamp(min=1) * h.shape[-1])).sqrt()


def logit_max(weights: Weights, batch: GraphBatch) -> Tensor:
    """Return the largest absolute logit of a real edge, 0-d; zero if there is none."""
    if isinstance(batch, DenseBatch):
        return weights.logits.masked_fill(~batch.linked.unsqueeze(1), 0.0).abs().amax()
    real = _real(batch).index_select(0, batch.edge_index[1])
    logits = weights.logits.masked_fill(~real.unsqueeze(-1), 0.0).abs()
    return torch.cat((logits.flatten(), logits.new_zeros(1))).amax()


def attention_entropy(weights: Weights, batch: GraphBatch) -> Tensor:
    """Compute the mean normalised entropy of attention, 0-d, over nodes with two or more neighbours.

    1 is uniform attention, 0 is attention to a single neighbour.
    """
    entropy_terms = -torch.special.xlogy(weights.alpha, weights.alpha)
    if isinstance(batch, DenseBatch):
        entropy, degree = entropy_terms.sum(-1).transpose(1, 2), batch.linked.sum(-1)
    else:
        entropy, degree = _sums_by_target(entropy_terms, batch)
    shared = degree > 1
    share = entropy.mean(-1) / degree.clamp(min=2).to(entropy.dtype).log()
    return share.masked_fill(~shared, 0.0).sum() / shared.sum().clamp(min=1)


def _real(batch: GraphBatch) -> Tensor:
    """Return the mask of real nodes, `[M]` or `[G, N]` bool."""
    if batch.real is not None:
        return batch.real
    nodes = batch.batch if isinstance(batch, SparseBatch) else batch.bias[..., 0]
    return torch.ones_like(nodes, dtype=torch.bool)


def _sums_by_target(entropy_terms: Tensor, batch: SparseBatch) -> tuple[Tensor, Tensor]:
    """Return sums over incoming edges `[M, H]` and in-degrees `[M]`, zero for padding."""
    target, nodes = batch.edge_index[1], len(batch.batch)
    entropy = entropy_terms.new_zeros(nodes, entropy_terms.shape[1]).index_add(0, target, entropy_terms)
    degree = torch.zeros_like(batch.batch).index_add(0, target, torch.ones_like(target))
    return entropy, degree.masked_fill(~_real(batch), 0)
