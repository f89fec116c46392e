"""Base of graph encoders: node embedding, message-passing blocks and a final norm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Self

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.edges import Edges, needs_static_shapes, prefers_compact
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.attention import Weights
from edgewise.models.encoders.diagnostics import activation_rms, attention_entropy, logit_max
from edgewise.models.encoders.found_edges import found_edges, with_found_edges
from edgewise.models.encoders.graph_batch import DenseBatch, GraphBatch, to_dense_batch, to_sparse_batch
from edgewise.models.encoders.partition import Part, run_block, split
from edgewise.models.vmap_guard import may_compact


class GraphEncoder(nn.Module, ABC):
    """Base of encoders that map graphs of any batch shape to node embeddings; a subclass defines `forward`.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`.

    Attributes:
        graph: may be replaced by another spec with the same node features, types and edge features.
        any_size: whether it takes graphs with other numbers of nodes than `graph` has.
    """

    any_size = True

    def __init__(self, graph: GraphSpec, config: EncoderConfig) -> None:
        super().__init__()
        self.graph, self.config = graph, config

    @classmethod
    def build(cls, graph: GraphSpec, config: EncoderConfig, *, role: Literal["actor", "critic"]) -> Self:  # noqa: ARG003
        """Build the encoder of an actor or a critic; by default both are the same."""
        return cls(graph, config)

    @property
    def hidden(self) -> int:
        """C, the width of an embedding."""
        return self.config.hidden

    @abstractmethod
    def forward(self, graph: TensorDict) -> Tensor:
        """Return node embeddings `[*B, N, C]`; zero for padding."""

    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Return statistics of activations that indicate numerical problems, each 0-d.

        By default the root mean square of the embeddings of real nodes.
        """
        with torch.no_grad():
            count = graph["node_mask"].sum().clamp(min=1) * self.hidden
            return {"output/rms": (self(graph).square().sum() / count).sqrt()}

    def with_edges(self, samples: TensorDictBase) -> TensorDictBase:
        """Return samples `[*B]` whose graphs may carry what this encoder would compute in every epoch."""
        return samples

    def attention(self, graph: TensorDict) -> Tensor | None:  # noqa: ARG002
        """Return attention weights from each node (column) to each node (row), `[*B, N, N]`, or None."""
        return None


class NodeEmbedding(nn.Module):
    """Embedding of each node from its own features and type, with a LayerNorm.

    Its scale does not depend on the degree of a node or on the size of the graph.

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
        """Embed `x [..., F]` and `node_type [...]` int64 or None to `[..., hidden]`."""
        if self.types is None:
            assert self.features is not None
            h = self.features(x)
        else:
            kind = x.new_zeros(x.shape[:-1], dtype=torch.int64) if node_type is None else node_type
            h = self.types(kind) if self.features is None else self.types(kind) + self.features(x)
        return self.norm(self.mix(functional.silu(h)))


class EdgeEmbedding(nn.Module):
    """A linear layer and an activation for edge features, in both layouts of a batch.

    Args:
        features: D, the number of edge features.
        width: K, the width of the embedding.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, width)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Embed `[L, D]` to `[L, K]`, or `[D, G, N, N]` to `[K, G, N, N]`; zero where there is no edge."""
        assert batch.edge_attr is not None
        if not isinstance(batch, DenseBatch):
            return functional.silu(self.linear(batch.edge_attr))
        planes = functional.silu(self.linear(batch.edge_attr.movedim(0, -1))).movedim(-1, 0)
        return planes.masked_fill(~batch.linked, 0.0)


def edge_width(graph: GraphSpec, config: EncoderConfig) -> int:
    """Return the number of edge features that the message-passing layers take."""
    return graph.edge_features and (config.edge_hidden or graph.edge_features)


class GraphConditioning(nn.Module):
    """Features of the whole graph, added to the embeddings of its nodes before every block.

    Args:
        features: G, the number of graph features.
        hidden: C, the width of embeddings.
        layers: number of blocks.
    """

    def __init__(self, features: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))

    def forward(self, u: Tensor, batch: GraphBatch) -> list[Tensor]:
        """Return what each block adds: `[M, C]`, or `[B, 1, C]` in a dense batch, from `u [B, G]`."""
        h = functional.silu(self.embed(u))
        shifts = [layer(h) for layer in self.layers]
        if isinstance(batch, DenseBatch):
            return [shift.unsqueeze(-2) for shift in shifts]
        return [shift.index_select(0, batch.batch) for shift in shifts]


class Block(nn.Module):
    """One step of message passing."""

    @abstractmethod
    def forward(self, h: Tensor, batch: GraphBatch) -> tuple[Tensor, Weights | None]:
        """Return the new embeddings, and the attention weights if there are any."""


class Trunk(nn.Module):
    """Node embedding, blocks and final norm on plain tensors: the part that is compiled.

    Args:
        graph: node features and types.
        config: widths.
        blocks: the steps of message passing.
    """

    def __init__(self, graph: GraphSpec, config: EncoderConfig, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.embed = NodeEmbedding(graph, config.hidden)
        features, wide = graph.edge_features, edge_width(graph, config)
        self.embed_edges = EdgeEmbedding(features, wide) if features and config.edge_hidden else None
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(config.hidden) if config.norm == "layer" else nn.Identity()
        self.part_size = config.part_size
        self.condition = (
            GraphConditioning(graph.graph_features, config.hidden, len(blocks))
            if graph.graph_features
            else None
        )

    def forward(
        self, x: Tensor, node_type: Tensor | None, batch: GraphBatch, u: Tensor | None = None
    ) -> Tensor:
        """Return node embeddings in the layout of `batch`; `u` are the graph features of each graph."""
        h, parts, batch = self.embed(x, node_type), self.parts(batch), self.with_edges(batch)
        for block, shift in zip(self.blocks, self.shifts(u, batch), strict=True):
            h, _ = run_block(block, h if shift is None else h + shift, batch, parts)
        return self.norm(h)

    def shifts(self, u: Tensor | None, batch: GraphBatch) -> Sequence[Tensor | None]:
        """Return what is added to embeddings before each block; None where graphs have no features."""
        if self.condition is None:
            return [None] * len(self.blocks)
        assert u is not None
        found: list[Tensor] = self.condition(u, batch)
        return found

    def with_edges(self, batch: GraphBatch) -> GraphBatch:
        """Return the batch with embedded edge features, if they are embedded."""
        if self.embed_edges is None or batch.edge_attr is None:
            return batch
        return batch._replace(edge_attr=self.embed_edges(batch))

    def parts(self, batch: GraphBatch) -> list[Part] | None:
        """Return the parts of large unions; None for one pass over all nodes, also in compiled code."""
        size = self.part_size
        if size is None or isinstance(batch, DenseBatch) or len(batch.batch) <= size:
            return None
        return None if needs_static_shapes(batch.batch) else split(batch, size=size)


class MessagePassingEncoder(GraphEncoder):
    """An encoder of message-passing blocks, which subclasses define.

    Parameters do not depend on the number of nodes, so a trained encoder runs on graphs of any size.

    Args:
        graph: the graph's shape and edge source.
        config: see `EncoderConfig`.
        blocks: the steps of message passing.

    Attributes:
        has_dense_layout: whether the blocks can work on matrices of all pairs.
    """

    has_dense_layout = False

    def __init__(self, graph: GraphSpec, config: EncoderConfig, blocks: Sequence[Block]) -> None:
        super().__init__(graph, config)
        self.trunk = Trunk(graph, config, blocks)
        self._overflow: Tensor | None = None

    def forward(self, graph: TensorDict) -> Tensor:
        """Return node embeddings `[*B, N, C]`; zero for padding."""
        edges, compact = self._edges_of(graph), self.config.compact
        if compact is None:
            compact = prefers_compact(edges)
        if self.takes_dense(edges, graph["node_mask"]):
            x, node_type, u = self._padded(graph)
            batch = to_dense_batch(graph, edges)
            h = self.trunk(x, node_type, batch, u)
            if batch.real is not None:
                h = h.masked_fill(~batch.real.unsqueeze(-1), 0.0)
            return h.view(*graph["node_mask"].shape, self.hidden)
        if self.config.compact:
            compact = may_compact(self, graph["x"])
        flat, sparse = to_sparse_batch(graph, self.graph, edges, compact=compact)
        return flat.nodes(self.trunk(flat.x, flat.node_type, sparse, flat.u))

    def with_edges(self, samples: TensorDictBase) -> TensorDictBase:
        """Return samples that carry their edges, if the sparse layout reads them more than once."""
        if self.config.compact is False:
            return samples
        with_them = with_found_edges(samples, self.graph)
        graph = with_them.get(GRAPH)
        edges = found_edges(graph)
        is_dense = edges is not None and self.takes_dense(edges, graph.get("node_mask"))
        return samples if is_dense else with_them

    def takes_dense(self, edges: Edges, node_mask: Tensor) -> bool:  # noqa: ARG002
        """Return whether to use the dense layout for these edges; only dot-product attention supports it."""
        return False

    @torch.no_grad()
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Return statistics of each layer k that indicate numerical problems, each 0-d.

        `layer_k/rms` is the root mean square of the activations. With attention, `layer_k/logit_max` is the
        largest absolute logit and `layer_k/entropy` the normalised entropy: 1 for uniform attention, 0 for
        attention to a single neighbour; graphs in parts have neither. `edges/overflow` is 1 if any graph
        since the last call had more edges than its edge source has slots for.
        """
        x, node_type, batch, u = self._batch(graph)
        h, parts = self.trunk.embed(x, node_type), self.trunk.parts(batch)
        batch = self.trunk.with_edges(batch)
        statistics = {"embedding/rms": activation_rms(h, batch)}
        steps = zip(self.trunk.blocks, self.trunk.shifts(u, batch), strict=True)
        for number, (block, shift) in enumerate(steps):
            h, weights = run_block(block, h if shift is None else h + shift, batch, parts)
            statistics[f"layer_{number}/rms"] = activation_rms(h, batch)
            if weights is not None:
                statistics[f"layer_{number}/logit_max"] = logit_max(weights, batch)
                statistics[f"layer_{number}/entropy"] = attention_entropy(weights, batch)
        if self._overflow is not None:
            statistics["edges/overflow"] = self._overflow.to(h.dtype)
            self._overflow = None
        return {**statistics, "output/rms": activation_rms(self.trunk.norm(h), batch)}

    @torch.no_grad()
    def attention(self, graph: TensorDict) -> Tensor | None:
        """Return the attention weights of the last block, averaged over heads.

        None without attention, and for edges that are not all pairs unless `dense` is `always`.
        """
        x, node_type, batch, u = self._batch(graph, prefer_dense=True)
        h, weights, batch = self.trunk.embed(x, node_type), None, self.trunk.with_edges(batch)
        for block, shift in zip(self.trunk.blocks, self.trunk.shifts(u, batch), strict=True):
            h, weights = block(h if shift is None else h + shift, batch)
        if weights is None or not isinstance(batch, DenseBatch):
            return None
        alpha = weights.alpha.mean(1).masked_fill(~batch.linked, 0.0)
        return alpha.view(*graph["node_mask"].shape, -1)

    def _edges_of(self, graph: TensorDict) -> Edges:
        """Return the edges, and remember whether some did not fit into their slots."""
        edges = found_edges(graph) or self.graph.edges_of(graph)
        if edges.overflow is not None and not needs_static_shapes(edges.overflow):
            before = self._overflow
            self._overflow = edges.overflow if before is None else before | edges.overflow
        return edges

    def _batch(
        self, graph: TensorDict, *, prefer_dense: bool = False
    ) -> tuple[Tensor, Tensor | None, GraphBatch, Tensor | None]:
        """Return the inputs of the trunk: node features, node types, edges and graph features."""
        edges = self._edges_of(graph)
        if self.takes_dense(edges, graph["node_mask"]) or (
            prefer_dense and self.has_dense_layout and edges.complete
        ):
            x, node_type, u = self._padded(graph)
            return x, node_type, to_dense_batch(graph, edges), u
        flat, sparse = to_sparse_batch(graph, self.graph, edges, compact=self.config.compact)
        return flat.x, flat.node_type, sparse, flat.u

    def _padded(self, graph: TensorDict) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return features `[B, N, F]`, types `[B, N]` or None, zero for padding, and `u [B, G]` or None."""
        mask = graph["node_mask"]
        x = self.graph.mask_padding(graph).reshape(-1, mask.shape[-1], graph["x"].shape[-1])
        u = graph["u"].reshape(-1, self.graph.graph_features) if self.graph.graph_features else None
        if not self.graph.node_types:
            return x, None, u
        return x, graph["node_type"].masked_fill(~mask, 0).reshape(-1, mask.shape[-1]), u
