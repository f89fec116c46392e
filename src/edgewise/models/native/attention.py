"""Attention over edges in one pass of C, forward and backward: see `attention.c`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from edgewise.models.native.library import library

MOST_THREADS = 2
"""Threads of torch up to which one thread of C is faster."""
MOST_HEADS = 64
"""Heads that the loops have room for."""

_NUMBER, _POINTER = ctypes.c_int64, ctypes.c_void_p


def takes(rows: Tensor, *, heads: int) -> bool:
    """Return whether the loops in C can be used: float32 on a CPU with few threads, and a compiler."""
    return (
        rows.device.type == "cpu"
        and rows.dtype == torch.float32
        and heads <= MOST_HEADS
        and torch.get_num_threads() <= MOST_THREADS
        and _usable()
    )


def attend(
    rows: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None, *, heads: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute attention over the edges of a sparse batch.

    Args:
        rows: query, key, value and root of every node, `[M, 4 * channels]`.
        edge_index: `[2, L]` int64, sources and targets.
        edge_attr: `[L, D]` or None.
        edge_weight: `[D, channels]` or None.
        heads: H.

    Returns:
        The messages with the root `[M, channels]`, the logits and the weights `[L, H]`; the last two have no
        gradient.

    Raises:
        IndexError: an edge refers to a node that does not exist.
    """
    found: tuple[Tensor, Tensor, Tensor] = _Attention.apply(rows, edge_index, edge_attr, edge_weight, heads)
    return found


class _Attention(torch.autograd.Function):
    """The two loops as a function of autograd."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, edge_index: Tensor, attr: Tensor | None, weight: Tensor | None, heads: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows = rows.contiguous()
        source, target = (row.contiguous() for row in edge_index.unbind(0))
        attr, weight = (None if each is None else each.contiguous() for each in (attr, weight))
        nodes, edges, width = len(rows), len(source), rows.shape[1] // 4
        sizes = (nodes, edges, heads, width // heads, 0 if attr is None else attr.shape[1])
        message, out = rows.new_empty(nodes, width), rows.new_empty(nodes, width)
        logits, alpha = rows.new_empty(edges, heads), rows.new_empty(edges, heads)
        work = rows.new_empty(2 * nodes * heads * (1 + sizes[-1]))
        given = (rows, source, target, attr, weight, message, out, logits, alpha, work)
        if _forward()(*sizes, *map(_address, given)):
            raise IndexError(f"an edge refers to a node that does not exist: there are {nodes}")
        ctx.save_for_backward(rows, source, target, attr, weight, message, alpha)
        ctx.sizes = sizes
        ctx.mark_non_differentiable(logits, alpha)
        return out, logits, alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, source, target, attr, weight, message, alpha = ctx.saved_tensors
        nodes, _, heads, _, features = ctx.sizes
        d_rows = torch.empty_like(rows)
        d_attr = torch.empty_like(attr) if ctx.needs_input_grad[2] else None
        d_weight = None if weight is None else torch.empty_like(weight)
        work = rows.new_empty(nodes * heads * (1 + 4 * features))
        given = (rows, source, target, attr, weight, message, alpha, gradient.contiguous())
        _backward()(*ctx.sizes, *map(_address, (*given, d_rows, d_attr, d_weight, work)))
        return d_rows, None, d_attr, d_weight, None


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@cache
def _usable() -> bool:
    """Return whether there is a library, and it computes what torch does on a small graph."""
    if _functions() is None:
        return False
    with torch.enable_grad():
        rows = torch.linspace(-2, 2, 3 * 64).sin().view(3, 64).requires_grad_()
        edge_index = torch.tensor([[0, 1, 2, 2], [2, 2, 2, 0]])
        out, *_ = attend(rows, edge_index, None, None, heads=2)
        query, key, value, root = rows.unflatten(1, (4, 2, 8)).unbind(1)
        linked = torch.zeros(3, 3, dtype=torch.bool).index_put(
            (edge_index[1], edge_index[0]), torch.tensor(True)
        )
        logits = torch.einsum("ihc,jhc->hij", query, key) / 8**0.5
        alpha = logits.masked_fill(~linked, -1e9).softmax(-1) * linked
        expected = (torch.einsum("hij,jhc->ihc", alpha, value) + root).flatten(1)
        found, wanted = (torch.autograd.grad(each.square().sum(), rows)[0] for each in (out, expected))
    return torch.allclose(out, expected, atol=1e-5) and torch.allclose(found, wanted, atol=1e-4)


@cache
def _functions() -> tuple[Any, Any] | None:
    """Return both loops; None if there is no library."""
    found = library("attention")
    if found is None:
        return None
    forward, backward = found.attention_forward, found.attention_backward
    forward.argtypes, forward.restype = [_NUMBER] * 5 + [_POINTER] * 10, ctypes.c_int
    backward.argtypes, backward.restype = [_NUMBER] * 5 + [_POINTER] * 12, None
    return forward, backward


def _forward() -> Any:
    functions = _functions()
    assert functions is not None
    return functions[0]


def _backward() -> Any:
    functions = _functions()
    assert functions is not None
    return functions[1]
