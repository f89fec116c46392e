"""Numbers of a layer that show trouble early: the size of activations and logits, the spread of attention."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.models.encoders.attention import Weights
from edgewise.models.encoders.views import Dense, Sparse, View


def activation_rms(h: Tensor, view: View) -> Tensor:
    """Root mean square of the embeddings of existing nodes, 0-d."""
    real = _real(view).unsqueeze(-1)
    return (h.masked_fill(~real, 0.0).square().sum() / (real.sum().clamp(min=1) * h.shape[-1])).sqrt()


def logit_max(weights: Weights, view: View) -> Tensor:
    """The largest absolute logit of an existing edge, 0-d; zero where there is none."""
    if isinstance(view, Dense):
        return weights.logits.masked_fill(~view.linked.unsqueeze(1), 0.0).abs().amax()
    real = _real(view).index_select(0, view.edge_index[1])
    logits = weights.logits.masked_fill(~real.unsqueeze(-1), 0.0).abs()
    return torch.cat((logits.flatten(), logits.new_zeros(1))).amax()


def attention_entropy(weights: Weights, view: View) -> Tensor:
    """Mean share of the largest entropy, 0-d, at nodes of two or more neighbours: 1 even, 0 all on one."""
    surprise = -torch.special.xlogy(weights.alpha, weights.alpha)
    if isinstance(view, Dense):
        entropy, degree = surprise.sum(-1).transpose(1, 2), view.linked.sum(-1)
    else:
        entropy, degree = _sums_by_target(surprise, view)
    shared = degree > 1
    share = entropy.mean(-1) / degree.clamp(min=2).to(entropy.dtype).log()
    return share.masked_fill(~shared, 0.0).sum() / shared.sum().clamp(min=1)


def _real(view: View) -> Tensor:
    """Which nodes exist, `[M]` or `[G, N]` bool."""
    if isinstance(view, Sparse) and view.real is None:
        return torch.ones_like(view.batch, dtype=torch.bool)
    assert view.real is not None
    return view.real


def _sums_by_target(surprise: Tensor, view: Sparse) -> tuple[Tensor, Tensor]:
    """Sums over incoming edges `[M, H]`, and in-degrees `[M]`, zero where a node does not exist."""
    target, nodes = view.edge_index[1], len(view.batch)
    entropy = surprise.new_zeros(nodes, surprise.shape[1]).index_add(0, target, surprise)
    degree = torch.zeros_like(view.batch).index_add(0, target, torch.ones_like(target))
    return entropy, degree.masked_fill(~_real(view), 0)
