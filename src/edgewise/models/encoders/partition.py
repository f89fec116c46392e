"""Message passing part by part, for graphs whose messages do not fit into memory at once.

A part has some of the nodes, all edges that lead to them, and the nodes at the other ends of these edges.
Each block runs on one part after another, and runs again on each in the backward pass. So memory holds the
node embeddings after every block and the messages of a single part. The results are those of one pass, up to
the order of sums; nothing is sampled.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

from edgewise.models.encoders.attention import Weights
from edgewise.models.encoders.graph_batch import GraphBatch, SparseBatch


class Part(NamedTuple):
    """Consecutive nodes of a union with the edges that lead to them.

    Attributes:
        first: the first of the consecutive nodes, the receivers.
        last: one after the last receiver.
        nodes: `[K]`, the receivers and then all other senders.
        edges: `[L]`, the edges that lead to receivers.
        batch: edges and graphs of the part, with `nodes` counted from 0 and without edge features.
    """

    first: int
    last: int
    nodes: Tensor
    edges: Tensor
    batch: SparseBatch


def split(batch: SparseBatch, *, size: int) -> list[Part]:
    """Split a union into parts of `size` receivers; the host waits for a device.

    Parts share few senders, and so little work is done twice, if neighbours have close numbers.
    """
    count, device = len(batch.batch), batch.batch.device
    edges = batch.edge_index[1].argsort(stable=True)
    source, target = batch.edge_index.index_select(1, edges).unbind(0)
    bounds = torch.arange(0, count + size, size, device=device).clamp(max=count)
    row = torch.empty(count, dtype=torch.int64, device=device)
    ranges = zip(
        pairwise(bounds.tolist()), pairwise(torch.searchsorted(target, bounds).tolist()), strict=True
    )
    parts = []
    for (first, last), (begin, end) in ranges:
        senders = source[begin:end]
        others = senders[(senders < first) | (senders >= last)].unique()
        nodes = torch.cat((torch.arange(first, last, device=device), others))
        row[nodes] = torch.arange(len(nodes), device=device)
        local = SparseBatch(
            edge_index=torch.stack((row[senders], target[begin:end] - first)),
            edge_attr=None,
            batch=batch.batch[nodes],
            num_graphs=batch.num_graphs,
            real=None if batch.real is None else batch.real[nodes],
        )
        parts.append(Part(first, last, nodes, edges[begin:end], local))
    return parts


def run_block(
    block: nn.Module, h: Tensor, batch: GraphBatch, parts: list[Part] | None
) -> tuple[Tensor, Weights | None]:
    """Return the embeddings that `block` gives for all nodes, and its attention weights.

    Args:
        block: computes the embedding of a node from its own, its senders and the edges from them, without
            random numbers.
        h: embeddings `[M, C]`, or `[G, N, C]` in a dense batch.
        batch: the edges.
        parts: see `split`; there are no attention weights then. None for one pass over all nodes.
    """
    if parts is None:
        found: tuple[Tensor, Weights | None] = block(h, batch)
        return found
    parameters = dict(block.named_parameters())
    names, values = tuple(parameters), parameters.values()
    return _InParts.apply(block, names, parts, h, batch.edge_attr, *values), None


class _InParts(torch.autograd.Function):
    """A block on all parts; its backward pass evaluates each part again."""

    @staticmethod
    def forward(
        ctx: Any,
        block: nn.Module,
        names: tuple[str, ...],
        parts: list[Part],
        h: Tensor,
        edge_attr: Tensor | None,
        *parameters: Tensor,
    ) -> Tensor:
        """Map embeddings `[M, C]` to `[M, C]`."""
        ctx.block, ctx.names, ctx.parts = block, names, parts
        ctx.save_for_backward(h, edge_attr, *parameters)
        found = torch.empty_like(h)
        for part in parts:
            attr = None if edge_attr is None else edge_attr.index_select(0, part.edges)
            found[part.first : part.last] = _run(block, {}, part, h.index_select(0, part.nodes), attr)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of embeddings, edge features and parameters."""
        h, edge_attr, *parameters = ctx.saved_tensors
        wanted = [number for number, needed in enumerate(ctx.needs_input_grad[3:]) if needed]
        totals = {number: torch.zeros_like(ctx.saved_tensors[number]) for number in wanted}
        weights = [each.detach().requires_grad_(each.requires_grad) for each in parameters]
        for part in ctx.parts:
            rows = h.index_select(0, part.nodes).requires_grad_(0 in wanted)
            attr = None if edge_attr is None else edge_attr.index_select(0, part.edges)
            if attr is not None:
                attr.requires_grad_(1 in wanted)
            with torch.enable_grad():
                found = _run(ctx.block, dict(zip(ctx.names, weights, strict=True)), part, rows, attr)
            inputs = [rows, attr, *weights]
            gradients = torch.autograd.grad(
                found,
                [inputs[number] for number in wanted],
                gradient[part.first : part.last],
                allow_unused=True,
            )
            for number, value in zip(wanted, gradients, strict=True):
                if value is None:
                    continue
                if number < 2:
                    totals[number].index_add_(0, (part.nodes, part.edges)[number], value)
                else:
                    totals[number] += value
        return None, None, None, *(totals.get(number) for number in range(2 + len(parameters)))


def _run(
    block: nn.Module, parameters: dict[str, Tensor], part: Part, rows: Tensor, attr: Tensor | None
) -> Tensor:
    """Return the new embeddings of the receivers of a part."""
    found, _ = functional_call(block, parameters, (rows, part.batch._replace(edge_attr=attr)))
    return found[: part.last - part.first]
