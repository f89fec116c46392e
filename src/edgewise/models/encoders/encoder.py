"""What every encoder shares: nodes embedded by themselves, blocks that pass messages, and a last norm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, Self

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.compile import compile_module
from edgewise.graphs.edges import Edges
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.vmap_guard import may_compact
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.attention import Weights
from edgewise.models.encoders.diagnostics import activation_rms, attention_entropy, logit_max
from edgewise.models.encoders.norm import make_norm
from edgewise.models.encoders.views import Dense, View, dense_view, sparse_view


class GraphEncoder(nn.Module):
    """A graph of any leading shape in, node embeddings out.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`.

    Attributes:
        graph: may be replaced by another spec with the same node features, types and edge features.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig) -> None:
        super().__init__()
        self.graph, self.config = graph, config

    @classmethod
    def build(cls, graph: GraphSpec, config: EncoderConfig, *, role: Literal["actor", "critic"]) -> Self:  # noqa: ARG003
        """Build the encoder of an actor or a critic; the two are alike unless a subclass says otherwise."""
        return cls(graph, config)

    @property
    def hidden(self) -> int:
        """C, the width of an embedding."""
        return self.config.hidden

    @abstractmethod
    def forward(self, graph: TensorDict) -> Tensor:
        """`[*B, N, C]`; zero for absent nodes."""

    @abstractmethod
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Numbers that show trouble early, each a 0-d tensor."""

    def attention(self, graph: TensorDict) -> Tensor | None:  # noqa: ARG002
        """How much each node (row) listens to each other (column), `[*B, N, N]`; None where unknown."""
        return None


class NodeEmbedding(nn.Module):
    """Each node from its own features and type alone, normalised: no scale depends on degree or graph size.

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
            kind = x.new_zeros(x.shape[:-1], dtype=torch.int64) if node_type is None else node_type
            h = self.types(kind) if self.features is None else self.types(kind) + self.features(x)
        return self.norm(self.mix(functional.silu(h)))


class Block(nn.Module):
    """One step of message passing."""

    @abstractmethod
    def forward(self, h: Tensor, view: View) -> tuple[Tensor, Weights | None]:
        """The new embeddings and, from attention, its weights."""


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


class MessagePassingEncoder(GraphEncoder):
    """An encoder made of blocks; subclasses give them.

    Parameters know nothing of the number of nodes, so what was trained on one size runs on any.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`.
        blocks: the steps of message passing.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig, blocks: Sequence[Block]) -> None:
        super().__init__(graph, config)
        self.trunk = compile_module(Trunk(graph, config, blocks), enabled=config.compile)

    def forward(self, graph: TensorDict) -> Tensor:
        """`[*B, N, C]`; zero for absent nodes."""
        edges = self.graph.edges_of(graph)
        if self.takes_dense(edges):
            x, node_type = self._padded(graph)
            view = dense_view(graph, edges)
            h = self.trunk(x, node_type, view).masked_fill(~view.real.unsqueeze(-1), 0.0)
            return h.view(*graph["node_mask"].shape, self.hidden)
        compact = may_compact(self, graph["x"]) if self.config.compact else self.config.compact
        flat, sparse = sparse_view(graph, self.graph, edges, compact=compact)
        return flat.nodes(self.trunk(flat.x, flat.node_type, sparse))

    def takes_dense(self, edges: Edges) -> bool:  # noqa: ARG002
        """Whether these edges run as matrices of pairs; only dot-product attention can."""
        return False

    @torch.no_grad()
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Numbers that show trouble early, each a 0-d tensor, per layer k.

        `layer_k/rms` of the activations; with attention also `layer_k/logit_max`, the largest absolute logit,
        and `layer_k/entropy`, how evenly attention is spread: 1 uniform, 0 all on one neighbour.
        """
        x, node_type, view = self._view(graph)
        h = self.trunk.embed(x, node_type)
        found = {"embedding/rms": activation_rms(h, view)}
        for number, block in enumerate(self.trunk.blocks):
            h, weights = block(h, view)
            found[f"layer_{number}/rms"] = activation_rms(h, view)
            if weights is not None:
                found[f"layer_{number}/logit_max"] = logit_max(weights, view)
                found[f"layer_{number}/entropy"] = attention_entropy(weights, view)
        return {**found, "output/rms": activation_rms(self.trunk.norm(h, view), view)}

    @torch.no_grad()
    def attention(self, graph: TensorDict) -> Tensor | None:
        """Weights of the last block's attention on pairs, mean over heads; None without matrices of pairs."""
        x, node_type, view = self._view(graph)
        h, weights = self.trunk.embed(x, node_type), None
        for block in self.trunk.blocks:
            h, weights = block(h, view)
        if weights is None or not isinstance(view, Dense):
            return None
        heard = weights.alpha.mean(1).masked_fill(~view.linked, 0.0)
        return heard.view(*graph["node_mask"].shape, -1)

    def _view(self, graph: TensorDict) -> tuple[Tensor, Tensor | None, View]:
        """What the trunk sees of `graph`: features, types and edges."""
        edges = self.graph.edges_of(graph)
        if self.takes_dense(edges):
            return *self._padded(graph), dense_view(graph, edges)
        flat, sparse = sparse_view(graph, self.graph, edges, compact=self.config.compact)
        return flat.x, flat.node_type, sparse

    def _padded(self, graph: TensorDict) -> tuple[Tensor, Tensor | None]:
        """Features `[G, N, F]` and types `[G, N]` or None, zero for absent nodes."""
        mask = graph["node_mask"]
        x = self.graph.mask_padding(graph).reshape(-1, mask.shape[-1], graph["x"].shape[-1])
        if not self.graph.node_types:
            return x, None
        return x, graph["node_type"].masked_fill(~mask, 0).reshape(-1, mask.shape[-1])
