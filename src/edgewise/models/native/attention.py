"""Attention over edges in one pass of C, forward and backward: see `attention.c`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from edgewise.models.native.library import library

MOST_THREADS = 2
"""Threads of torch up to which one thread of C is faster."""
MOST_HEADS = 64
"""Heads that the loops have room for."""

NAME = "attention"
InTorch = Callable[..., tuple[Tensor, Tensor, Tensor]]
"""A function with the arguments and results of `attend`, in torch."""

_NUMBER, _POINTER = ctypes.c_int64, ctypes.c_void_p


def takes(rows: Tensor, edge_attr: Tensor | None, *, heads: int) -> bool:
    """Return whether the loops in C can be used: float32 on a CPU with few threads, and a compiler."""
    tensors = (rows,) if edge_attr is None else (rows, edge_attr)
    return (
        all(each.device.type == "cpu" and each.dtype == torch.float32 for each in tensors)
        and heads <= MOST_HEADS
        and torch.get_num_threads() <= MOST_THREADS
        and usable()
    )


def attend(
    rows: Tensor,
    edge_index: Tensor,
    edge_attr: Tensor | None,
    edge_weight: Tensor | None,
    *,
    heads: int,
    in_torch: InTorch,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute attention over the edges of a sparse batch.

    Args:
        rows: query, key, value and root of every node, `[M, 4 * channels]`, float32 like all others.
        edge_index: `[2, L]` int64, sources and targets.
        edge_attr: `[L, D]` or None.
        edge_weight: `[D, channels]` or None.
        heads: H.
        in_torch: the same function in torch, for derivatives of second order.

    Returns:
        The messages with the root `[M, channels]`, the logits and the weights `[L, H]`; the last two have no
        gradient.

    Raises:
        IndexError: an edge refers to a node that does not exist.
        ValueError: shapes, types or devices do not fit each other.
    """
    _check(rows, edge_index, edge_attr, edge_weight, heads=heads)
    found: tuple[Tensor, Tensor, Tensor] = _Attention.apply(
        rows, edge_index, edge_attr, edge_weight, heads, in_torch
    )
    return found


def _check(
    rows: Tensor, edge_index: Tensor, attr: Tensor | None, weight: Tensor | None, *, heads: int
) -> None:
    """Raise ValueError unless the loops in C stay within the memory of their arguments."""
    width, edges = rows.shape[1] // 4, edge_index.shape[1]
    features = None if attr is None else attr.shape[-1]
    fits = rows.dim() == 2 and rows.shape[1] == 4 * width and width % heads == 0
    fits &= edge_index.dtype == torch.int64 and tuple(edge_index.shape) == (2, edges)
    fits &= (attr is None) == (weight is None)
    if attr is not None and weight is not None:
        fits &= tuple(attr.shape) == (edges, features) and tuple(weight.shape) == (features, width)
    numbers = [each for each in (rows, attr, weight) if each is not None]
    fits &= all(each.dtype == torch.float32 for each in numbers)
    if not fits or any(each.device.type != "cpu" for each in (*numbers, edge_index)):
        shapes = [None if each is None else tuple(each.shape) for each in (rows, edge_index, attr, weight)]
        raise ValueError(f"rows, edges, edge features and weights do not fit each other: {shapes}")


class _Attention(torch.autograd.Function):
    """The two loops as a function of autograd."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        edge_index: Tensor,
        attr: Tensor | None,
        weight: Tensor | None,
        heads: int,
        in_torch: InTorch,
    ) -> tuple[Tensor, Tensor, Tensor]:
        nodes, edges, width = len(rows), edge_index.shape[1], rows.shape[1] // 4
        sizes = (nodes, edges, heads, width // heads, 0 if attr is None else attr.shape[1])
        message, out = rows.new_empty(nodes, width), rows.new_empty(nodes, width)
        logits, alpha = rows.new_empty(edges, heads), rows.new_empty(edges, heads)
        work = rows.new_empty(2 * nodes * heads * (1 + sizes[-1]) + width * sizes[-1])
        given = (*_contiguous(rows, edge_index, attr, weight), message, out, logits, alpha, work)
        if _functions()[0](*sizes, *map(_address, given)):
            raise IndexError(f"an edge refers to a node that does not exist: there are {nodes}")
        ctx.save_for_backward(rows, edge_index, attr, weight, message, alpha)
        ctx.sizes, ctx.in_torch = sizes, in_torch
        ctx.mark_non_differentiable(logits, alpha)
        return out, logits, alpha

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # gradients that have gradients themselves
            return _differentiable_gradients(ctx, gradient)
        rows, edge_index, attr, weight, message, alpha = ctx.saved_tensors
        nodes, _, heads, channels, features = ctx.sizes
        d_rows = rows.new_empty(rows.shape)
        d_attr = rows.new_empty(attr.shape) if ctx.needs_input_grad[2] else None
        d_weight = None if weight is None else rows.new_empty(weight.shape)
        work = rows.new_empty(heads * (nodes * (1 + 4 * features) + 2 * channels * features))
        given = (*_contiguous(rows, edge_index, attr, weight), message, alpha, gradient.contiguous())
        _functions()[1](*ctx.sizes, *map(_address, (*given, d_rows, d_attr, d_weight, work)))
        return d_rows, None, d_attr, d_weight, None, None


def _differentiable_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients as functions of rows, edge features, weights and gradient, by torch."""
    rows, edge_index, attr, weight, *_ = ctx.saved_tensors
    inputs, wanted = (rows, edge_index, attr, weight), ctx.needs_input_grad[:4]
    out, *_ = ctx.in_torch(*inputs, heads=ctx.sizes[2])
    of = [each for each, is_wanted in zip(inputs, wanted, strict=True) if is_wanted]
    found = iter(torch.autograd.grad(out, of, gradient, create_graph=True))
    return *(next(found) if is_wanted else None for is_wanted in wanted), None, None


def _contiguous(
    rows: Tensor, edge_index: Tensor, attr: Tensor | None, weight: Tensor | None
) -> tuple[Tensor | None, ...]:
    """Return rows, sources, targets, edge features and weights, each in one piece of memory."""
    tensors = (rows, *edge_index.unbind(0), attr, weight)
    return tuple(None if each is None else each.contiguous() for each in tensors)


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@cache
def usable() -> bool:
    """Return whether there is a library, and it computes what torch does on a small graph."""
    if library(NAME).functions is None:
        return False
    cpu = torch.empty(0, device="cpu", dtype=torch.float32)
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        rows = cpu.new_tensor(range(3 * 64)).sin().mul(2).view(3, 64).requires_grad_()
        attr, weight = cpu.new_tensor([[1.0], [-2.0], [0.5], [1.5]]), cpu.new_tensor(range(16)).cos()
        edge_index = torch.tensor([[0, 1, 2, 2], [2, 2, 2, 0]], device="cpu")
        out, *_ = _Attention.apply(rows, edge_index, attr, weight.view(1, 16), 2, None)
        query, key, value, root = rows.unflatten(1, (4, 2, 8)).unbind(1)
        edge = (attr * weight).unflatten(1, (2, 8))
        messages = []
        for node in range(3):  # one node after another, which no library does
            chosen = edge_index[1] == node
            source, attended = edge_index[0, chosen], edge[chosen]
            alpha = ((key[source] + attended) * query[node]).sum(-1).div(8**0.5).softmax(0)
            messages.append(((value[source] + attended) * alpha.unsqueeze(-1)).sum(0) + root[node])
        expected = torch.stack(messages).flatten(1)
        found, wanted = (torch.autograd.grad(each.square().sum(), rows)[0] for each in (out, expected))
    return torch.allclose(out, expected, atol=1e-5) and torch.allclose(found, wanted, atol=1e-4)


@cache
def _functions() -> tuple[Any, Any]:
    """Return both loops."""
    found = library(NAME).functions
    assert found is not None, "there is no library"
    forward, backward = found.attention_forward, found.attention_backward
    forward.argtypes, forward.restype = [_NUMBER] * 5 + [_POINTER] * 10, ctypes.c_int
    backward.argtypes, backward.restype = [_NUMBER] * 5 + [_POINTER] * 12, None
    return forward, backward
