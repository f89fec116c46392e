"""What every encoder shares: nodes embedded by themselves, blocks that pass messages, a last norm, and both layouts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.spec import GraphSpec
from edgewise.models.attention import Weights
from edgewise.models.config import EncoderConfig
from edgewise.models.norm import make_norm
from edgewise.models.views import Dense, Sparse, View, dense_view, sparse_view


class NodeEmbedding(nn.Module):
    """Each node from its own features and type alone, normalised, so that no scale depends on degree or graph size.

    Args:
        graph: node features and types.
        hidden: width of the embedding.
    """

    def __init__(self, graph: GraphSpec, hidden: int) -> None:
        super().__init__()
        features, types = graph.node_features, graph.node_types
        self.features = nn.Linear(features, hidden) if features else None
        self.types = nn.Embedding(max(types, 1), hidden) if types or not features else None
        self.mix = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x: Tensor, node_type: Tensor | None) -> Tensor:
        """`x [..., F]`, `node_type [...]` int64 or None, to `[..., hidden]`."""
        if self.types is None:
            assert self.features is not None
            h = self.features(x)
        else:
            h = self.types(x.new_zeros(x.shape[:-1], dtype=torch.int64) if node_type is None else node_type)
            h = h if self.features is None else h + self.features(x)
        return self.norm(self.mix(functional.relu(h)))


class Block(nn.Module):
    """One step of message passing: `h` and a view in, the new `h` and attention weights (or None) out."""

    def forward(self, h: Tensor, view: View) -> tuple[Tensor, Weights | None]:
        """The step."""
        raise NotImplementedError


class Trunk(nn.Module):
    """Embedding, blocks and last norm on tensors alone: the part that compiles.

    Args:
        graph: what the nodes are.
        config: widths and norm.
        blocks: the steps of message passing.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.embed = NodeEmbedding(graph, config.hidden)
        self.blocks = nn.ModuleList(blocks)
        self.norm = make_norm(config.norm, config.hidden)

    def forward(self, x: Tensor, node_type: Tensor | None, view: View) -> Tensor:
        """Embeddings of nodes in the layout of `view`."""
        h = self.embed(x, node_type)
        for block in self.blocks:
            h, _ = block(h, view)
        return self.norm(h, view)


class Encoder(nn.Module):
    """A graph of any leading shape in, node embeddings out.

    Subclasses give the blocks. Parameters know nothing of the number of nodes, so a trained encoder runs on any size.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`.
        blocks: the steps of message passing.

    Attributes:
        graph: may be replaced by another spec of the same features and types, such as a larger graph's.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.graph, self.config = graph, config
        self.trunk = Trunk(graph, config, blocks)
        if config.compile:
            self.trunk.compile(dynamic=True)

    @property
    def hidden(self) -> int:
        """The width of an embedding."""
        return self.config.hidden

    def forward(self, graph: TensorDict) -> Tensor:
        """`[*B, N, hidden]`; zero for absent nodes."""
        edges = self.graph.edges_of(graph)
        if self.takes_dense(complete=edges.complete):
            x, node_type = self._padded(graph)
            view = dense_view(graph, edges)
            h = self.trunk(x, node_type, view).masked_fill(~view.real.unsqueeze(-1), 0.0)
            return h.view(*graph["node_mask"].shape, self.hidden)
        self._refuse_vmap(graph["x"])
        flat, sparse = sparse_view(graph, self.graph, edges, compact=self.config.compact)
        return flat.nodes(self.trunk(flat.x, flat.node_type, sparse))

    def takes_dense(self, *, complete: bool) -> bool:  # noqa: ARG002
        """Whether edges run as matrices of pairs; only dot-product attention can."""
        return False

    def view(self, graph: TensorDict) -> tuple[Tensor, Tensor | None, View]:
        """What the trunk sees of `graph`: features, types and edges."""
        edges = self.graph.edges_of(graph)
        if self.takes_dense(complete=edges.complete):
            return *self._padded(graph), dense_view(graph, edges)
        flat, sparse = sparse_view(graph, self.graph, edges, compact=self.config.compact)
        return flat.x, flat.node_type, sparse

    @torch.no_grad()
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Numbers that show trouble early, each a 0-d tensor, per layer k.

        `layer_k/rms` of the activations; with attention also `layer_k/logit_max`, the largest absolute logit, and
        `layer_k/entropy`, the mean entropy of attention over the nodes with two or more neighbours, 1 where
        uniform and 0 where one neighbour takes all.
        """
        x, node_type, view = self.view(graph)
        h = self.trunk.embed(x, node_type)
        found = {"embedding/rms": _rms(h, view)}
        for number, block in enumerate(self.trunk.blocks):
            h, weights = block(h, view)
            found[f"layer_{number}/rms"] = _rms(h, view)
            if weights is not None:
                found[f"layer_{number}/logit_max"] = _logit_max(weights, view)
                found[f"layer_{number}/entropy"] = _entropy(weights, view)
        found["output/rms"] = _rms(self.trunk.norm(h, view), view)
        return found

    def _padded(self, graph: TensorDict) -> tuple[Tensor, Tensor | None]:
        """Features `[G, N, F]` and types `[G, N]` or None, zero for absent nodes."""
        mask = graph["node_mask"]
        x = self.graph.mask_padding(graph).reshape(-1, mask.shape[-1], graph["x"].shape[-1])
        if not self.graph.node_types:
            return x, None
        return x, graph["node_type"].masked_fill(~mask, 0).reshape(-1, mask.shape[-1])

    def _refuse_vmap(self, x: Tensor) -> None:
        """Stop before a vmap over data-dependent shapes poisons the module."""
        if self.config.compact and torch._C._functorch.is_batchedtensor(x):
            raise RuntimeError(
                "this encoder drops padding (compact=True), and shapes that depend on data cannot be vmapped: "
                "pass deactivate_vmap=True to TorchRL's estimator or loss, use GraphGAE, or build the encoder with "
                "compact=False"
            )


def _real(view: View, h: Tensor) -> Tensor:
    if isinstance(view, Dense) or view.real is not None:
        assert view.real is not None
        return view.real
    return torch.ones(h.shape[:-1], dtype=torch.bool, device=h.device)


def _rms(h: Tensor, view: View) -> Tensor:
    """Root mean square of the embeddings of existing nodes."""
    real = _real(view, h).unsqueeze(-1)
    return (h.masked_fill(~real, 0.0).square().sum() / (real.sum().clamp(min=1) * h.shape[-1])).sqrt()


def _logit_max(weights: Weights, view: View) -> Tensor:
    """The largest absolute logit over existing edges."""
    if isinstance(view, Dense):
        return weights.logits.masked_fill(~view.linked.unsqueeze(1), 0.0).abs().amax()
    real = _real(view, view.batch.unsqueeze(-1)).index_select(0, view.edge_index[1])
    zero = weights.logits.new_zeros(1, weights.logits.shape[1])
    return torch.cat((weights.logits.masked_fill(~real.unsqueeze(-1), 0.0), zero)).abs().amax()


def _entropy(weights: Weights, view: View) -> Tensor:
    """Mean over nodes of two or more neighbours of attention entropy, as a share of its maximum."""
    surprise = -torch.special.xlogy(weights.alpha, weights.alpha)
    if isinstance(view, Dense):
        entropy = surprise.sum(-1).transpose(1, 2)
        degree = view.linked.sum(-1)
    else:
        entropy, degree = _sums_by_target(surprise, view)
    shared = degree > 1
    share = entropy.mean(-1) / degree.clamp(min=2).to(entropy.dtype).log()
    return share.masked_fill(~shared, 0.0).sum() / shared.sum().clamp(min=1)


def _sums_by_target(surprise: Tensor, view: Sparse) -> tuple[Tensor, Tensor]:
    """Sums over incoming edges `[M, H]`, and in-degrees `[M]`, zero where a node is not real."""
    target, nodes = view.edge_index[1], len(view.batch)
    entropy = surprise.new_zeros(nodes, surprise.shape[1]).index_add(0, target, surprise)
    degree = torch.zeros_like(view.batch).index_add(0, target, torch.ones_like(target))
    return entropy, degree.masked_fill(~_real(view, view.batch.unsqueeze(-1)), 0)
