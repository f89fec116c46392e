"""The published InforMARL network, with switches for remedies against its growth with the team size.

It serves for comparison: `edgewise bench stability` shows the effect of every switch. Train
`GraphTransformer` instead. Source: https://arxiv.org/abs/2211.02127 and the published code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from edgewise.systems.swarm.models.config import Remedies

FEATURES, TYPES, TYPE_WIDTH = 6, 3, 2


class Traces(NamedTuple):
    """Intermediate results of a forward pass, for diagnosis.

    Attributes:
        embedding: `[G, E, C]`, before any attention.
        logits: attention logits of each layer, `[G, H, E, E]`, target first, before clipping; zero without an
            edge.
        alpha: attention weights of each layer, of the same shape.
        linked: edges from sender (column) to receiver (row), `[G, E, E]` bool.
    """

    embedding: Tensor
    logits: list[Tensor]
    alpha: list[Tensor]
    linked: Tensor


class InforMARLTrunk(nn.Module):
    """Embeds all entities of one graph per agent.

    Messages of neighbours are summed, so the embedding grows with the degree and the attention logits with
    its square. A node is not part of its own embedding. Three heads are averaged.

    Args:
        remedies: changes to the published network.
        hidden: C, width of an embedding.
        heads: H.
        layers: number of attention layers.
        radius: entities at this distance or farther are not connected.

    Example:
        >>> InforMARLTrunk()(torch.randn(4, 9, 7).round(), torch.rand(4, 9, 9)).shape
        torch.Size([4, 9, 16])
    """

    def __init__(
        self,
        remedies: Remedies | None = None,
        *,
        hidden: int = 16,
        heads: int = 3,
        layers: int = 3,
        radius: float = 1.0,
    ) -> None:
        super().__init__()
        self.remedies, self.radius = remedies or Remedies(), radius
        self.embed = Embedding(self.remedies, hidden)
        self.layers = nn.ModuleList(Attention(self.remedies, hidden, heads=heads) for _ in range(layers))
        if self.remedies.depth_init:
            _depth_scaled(self, layers + 1)

    def forward(self, features: Tensor, distance: Tensor) -> Tensor:
        """Map `features [G, E, 7]`, type last, and `distance [G, E, E]` to embeddings `[G, E, C]`."""
        return self.traced(features, distance)[0]

    def traced(self, features: Tensor, distance: Tensor) -> tuple[Tensor, Traces]:
        """Run `forward` and return its intermediate results as well."""
        linked = (distance > 0) & (distance < self.radius)
        h = self.embed(features, distance, linked)
        traces = Traces(h, [], [], linked)
        for layer in self.layers:
            h, logits, alpha = layer(h, distance, linked)
            traces.logits.append(logits)
            traces.alpha.append(alpha)
        return h, traces


class Embedding(nn.Module):
    """Embeds entities from messages of their neighbours: features, type and distance through two layers.

    Both layers share one LayerNorm, as published.
    """

    def __init__(self, remedies: Remedies, hidden: int) -> None:
        super().__init__()
        self.remedies = remedies
        edge = 0 if remedies.embed == "node" else 1
        self.kinds = nn.Embedding(TYPES, TYPE_WIDTH)
        self.first = _orthogonal(nn.Linear(FEATURES + TYPE_WIDTH + edge, hidden))
        self.second = _orthogonal(nn.Linear(hidden, hidden))
        self.norm = nn.LayerNorm(hidden)
        self.last = nn.LayerNorm(hidden) if remedies.embed_norm else nn.Identity()

    def forward(self, features: Tensor, distance: Tensor, linked: Tensor) -> Tensor:
        """Map `[G, E, 7]`, `[G, E, E]` and `[G, E, E]` bool to `[G, E, C]`."""
        own = torch.cat((features[..., :FEATURES], self.kinds(features[..., FEATURES].long())), -1)
        if self.remedies.embed == "node":
            return self.last(self._layers(own))
        said = own.unsqueeze(1).expand(-1, own.shape[1], -1, -1)
        messages = self._layers(torch.cat((said, distance.unsqueeze(-1)), -1))
        total = messages.masked_fill(~linked.unsqueeze(-1), 0.0).sum(2)
        return self.last(total * self._scale(linked.sum(-1, keepdim=True)))

    def _layers(self, h: Tensor) -> Tensor:
        h = self.norm(functional.relu(self.first(h)))
        return self.norm(functional.relu(self.second(h)))

    def _scale(self, degree: Tensor) -> Tensor:
        """Return the factor of the sum over neighbours, given the degree."""
        number = degree.clamp(min=1).float()
        match self.remedies.aggregation:
            case "sum":
                return torch.ones_like(number)
            case "mean":
                return 1 / number
            case "root":
                return number.rsqrt()
            case "log":
                return number.log1p() / number


class Attention(nn.Module):
    """`TransformerConv` (https://arxiv.org/abs/2009.03509) on all pairs, heads averaged, then ReLU."""

    def __init__(self, remedies: Remedies, hidden: int, *, heads: int) -> None:
        super().__init__()
        self.remedies, self.heads, self.hidden = remedies, heads, hidden
        self.query, self.key, self.value = (nn.Linear(hidden, heads * hidden) for _ in range(3))
        self.edge = nn.Linear(1, heads * hidden, bias=False)
        self.root = nn.Linear(hidden, hidden)
        self.gate = nn.Linear(3 * hidden, 1, bias=False) if remedies.beta else None
        self.norm = nn.LayerNorm(hidden) if remedies.layer_norm else nn.Identity()

    def forward(self, h: Tensor, distance: Tensor, linked: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return new embeddings `[G, E, C]`, and logits and weights `[G, H, E, E]`."""
        query, key, value = (self._by_head(part(h)) for part in (self.query, self.key, self.value))
        edge = self.edge.weight.view(self.heads, self.hidden)
        along = torch.einsum("ghic,hc->ghi", query, edge).unsqueeze(-1) * distance.unsqueeze(1)
        logits = (query @ key.transpose(-1, -2) + along) / math.sqrt(self.hidden)
        unheard = ~linked.unsqueeze(1)
        alpha = self._bounded(logits).masked_fill(unheard, torch.finfo(h.dtype).min).softmax(-1)
        alpha = alpha.masked_fill(unheard, 0.0)
        kept = functional.dropout(alpha, self.remedies.dropout, self.training)
        way = (kept * distance.unsqueeze(1)).sum(-1, keepdim=True) * edge.unsqueeze(1)
        message = (kept @ value + way).mean(1)
        return self._finish(h, message), logits.masked_fill(unheard, 0.0), alpha

    def _by_head(self, rows: Tensor) -> Tensor:
        """Reshape `[G, E, H * C]` to `[G, H, E, C]`."""
        return rows.unflatten(-1, (self.heads, self.hidden)).transpose(1, 2)

    def _bounded(self, logits: Tensor) -> Tensor:
        cap, clip = self.remedies.soft_cap, self.remedies.logit_clip
        logits = logits if cap is None else cap * torch.tanh(logits / cap)
        return logits if clip is None else logits.clamp(-clip, clip)

    def _finish(self, h: Tensor, message: Tensor) -> Tensor:
        """Apply root weights, activation and the remedies after attention."""
        remedies, root = self.remedies, self.root(h)
        if self.gate is None:
            out = message + root
        else:
            beta = torch.sigmoid(self.gate(torch.cat((message, root, message - root), -1)))
            out = beta * root + (1 - beta) * message
        out = self.norm(functional.relu(out)) + remedies.residual * h
        if remedies.graph_norm:
            out = (out - out.mean(1, keepdim=True)) / (out.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return out if remedies.clamp is None else out.clamp(-remedies.clamp, remedies.clamp)


def _orthogonal(layer: nn.Linear) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, math.sqrt(2))
    nn.init.zeros_(layer.bias)
    return layer


def _depth_scaled(trunk: nn.Module, depth: int) -> None:
    for module in trunk.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, gain=1 / math.sqrt(depth))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
