"""Tensors with rows of different lengths that look padded: rollouts and replay buffers store live slots only.

A batch of 63 graphs of 10 nodes and one of 500 has 64 x 500 node slots and 1,130 nodes. `pack` replaces the
entries of such graphs by `Ragged` tensors, which keep the slots in use one after another, and for each graph
where they begin. Whatever moves graphs around (indexing, stacking, reshaping) moves these two numbers.
Anything else gets an ordinary padded tensor, so that code does not have to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torch.utils._pytree import tree_map

from edgewise.graphs.actions import ActionLayout
from edgewise.graphs.keys import GRAPH
from edgewise.graphs.slots import slots_of, used_by, used_slots

aten = torch.ops.aten
LEAST_SLOTS = 8_192
"""Slots of nodes in all worlds from which empty ones are worth leaving out."""


class Ragged(Tensor):
    """A tensor `[*B, ..., K, ...]` of which each row uses its first slots along K; the others are zero.

    Attributes:
        content: `[L, ...]`, the slots in use of all rows, and perhaps of others.
        first: `[*B]` int64, where the slots of a row begin.
        used: `[*B]` int64, how many they are.
        place: the number of the dimension K, without the batch dimensions.
    """

    content: Tensor
    first: Tensor
    used: Tensor
    place: int

    @staticmethod
    def __new__(cls, content: Tensor, first: Tensor, used: Tensor, *, slots: int, place: int) -> Ragged:
        """Make the tensor; `slots` is K."""
        rest = list(content.shape[1:])
        rest.insert(place, slots)
        shape = (*first.shape, *rest)
        made = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=content.dtype, device=content.device)
        made.content, made.first, made.used, made.place = content, first, used, place
        return made

    @property
    def slots(self) -> int:
        """K, the number of slots of a padded row."""
        return self.shape[self.first.dim() + self.place]

    def padded(self, slots: int | None = None) -> Tensor:
        """Return the rows with a number of slots, K if not given, as an ordinary tensor."""
        slots = self.slots if slots is None else slots
        place = torch.arange(slots, device=self.device)
        exists = place < self.used.unsqueeze(-1)
        row = torch.where(exists, self.first.unsqueeze(-1) + place, len(self.content))
        content = torch.nn.functional.pad(self.content, (0, 0) * (self.content.dim() - 1) + (0, 1))
        found = content.index_select(0, row.reshape(-1)).unflatten(0, row.shape)
        return found.movedim(self.first.dim(), self.first.dim() + self.place)

    def numbers(self) -> int:
        """Return how many numbers these rows hold."""
        return int(self.used.sum()) * self.content.shape[1:].numel()

    def at(self, index: Tensor) -> Ragged:
        """Return the rows at an index of the first batch dimension."""
        return self._with(self.content, self.first[index], self.used[index])

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        """Return shape and size."""
        return f"Ragged({list(self.shape)}, {self.content.dtype}, {len(self.content)} slots)"

    def _with(self, content: Tensor, first: Tensor, used: Tensor) -> Ragged:
        return Ragged(content, first, used, slots=self.slots, place=self.place)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Apply an operation to the numbers of the rows where it only moves rows, else to padded tensors."""
        kwargs = dict(kwargs or {})
        handler = _HANDLERS.get(func)
        found = NotImplemented if handler is None else handler(func, *args, **kwargs)
        if found is not NotImplemented:
            return found
        if func in _WRITES and isinstance(args[0], Ragged):
            raise TypeError(f"{func} would write to a Ragged tensor; write to its padded() tensor")
        return func(*tree_map(_plain, list(args)), **tree_map(_plain, kwargs))


def row_numbers(first: Tensor, used: Tensor) -> Tensor:
    """Return `first, first + 1, ...`, `used` numbers of each row `[M]`, one row after another.

    Example:
        >>> row_numbers(torch.tensor([5, 0]), torch.tensor([2, 3]))
        tensor([5, 6, 0, 1, 2])
    """
    number = torch.repeat_interleave(first - (used.cumsum(0) - used), used)
    return number + torch.arange(len(number), device=number.device)


def ragged(padded: Tensor, used: Tensor, *, place: int) -> Ragged:
    """Return a tensor without the slots that are not used.

    Args:
        padded: `[*B, ..., K, ...]`.
        used: `[*B]`, slots in use along K, the first ones.
        place: the number of the dimension K, without the batch dimensions.
    """
    return _take(padded, _LiveSlots.of(used, padded.shape[used.dim() + place]), place=place)


class _LiveSlots(NamedTuple):
    """The slots in use of rows with K slots each.

    Attributes:
        number: `[L]` int64, among the slots of all rows.
        first: `[*B]` int64, where those of a row begin.
        used: `[*B]` int64, how many they are.
    """

    number: Tensor
    first: Tensor
    used: Tensor

    @staticmethod
    def of(used: Tensor, slots: int) -> _LiveSlots:
        flat = used.reshape(-1)
        number = row_numbers(torch.arange(len(flat), device=used.device) * slots, flat)
        return _LiveSlots(number, (flat.cumsum(0) - flat).view(used.shape), used)


def _take(padded: Tensor, live: _LiveSlots, *, place: int) -> Ragged:
    lead, slots = live.used.dim(), padded.shape[live.used.dim() + place]
    rows = padded.movedim(lead + place, lead).flatten(0, lead)
    return Ragged(rows.index_select(0, live.number), live.first, live.used, slots=slots, place=place)


def pack(observation: TensorDictBase, layout: ActionLayout | None) -> TensorDictBase:
    """Return an observation `[*B]` whose entries with slots of nodes or edges are ragged; it synchronises."""
    used, found, live = used_by(observation), observation.copy(), {}
    for key, counted, place in slots_of(observation, layout):
        if counted in used:
            value = observation.get(key)
            if counted not in live:
                live[counted] = _LiveSlots.of(used[counted], value.shape[used[counted].dim() + place])
            found.set(key, _take(value, live[counted], place=place))
    return found


def trimmed(padded: Tensor, *, place: int, batch_dims: int) -> Ragged:
    """Return a tensor without the slots at the end of rows that are zero; see `ragged`."""
    rows = padded.movedim(batch_dims + place, batch_dims)
    has_numbers = (rows.flatten(batch_dims + 1) != 0).any(-1) if rows.dim() > batch_dims + 1 else rows != 0
    return ragged(padded, used_slots(has_numbers), place=place)


def alike(tensordict: TensorDictBase, other: TensorDictBase) -> TensorDictBase:
    """Return the same entries, those ragged that are in `other`, and no others."""

    def as_in_other(mine: Tensor, theirs: Tensor) -> Tensor:
        if not isinstance(theirs, Ragged):
            return _plain(mine)
        if isinstance(mine, Ragged):
            return mine
        return trimmed(mine, place=theirs.place, batch_dims=theirs.first.dim())

    return tensordict.apply(as_in_other, other)


def padded(tensordict: TensorDictBase) -> TensorDictBase:
    """Return the same entries, all as ordinary tensors."""
    return tensordict.apply(_plain)


def pays(observation: TensorDictBase) -> bool:
    """Return whether to store observations without their empty slots: on a CPU, if two thirds are empty.

    Elsewhere the host would wait for a device in every step.
    """
    graph = observation.get(GRAPH, None)
    if graph is None or (graph.device is not None and graph.device.type != "cpu"):
        return False
    mask = graph.get("node_mask", None)
    return (
        mask is not None and mask.numel() >= LEAST_SLOTS and 3 * int(used_slots(mask).sum()) <= mask.numel()
    )


def stored_bytes(tensordict: TensorDictBase) -> int:
    """Return the bytes of all entries, of ragged ones those of their live slots and of two numbers a row."""
    total = 0
    for value in tensordict.values(True, True):
        if isinstance(value, Ragged):
            total += value.numbers() * value.element_size() + 2 * value.first.numel() * 8
        else:
            total += value.numel() * value.element_size()
    return total


def _plain(value: Any) -> Any:
    """Return a ragged tensor padded, and anything else as it is."""
    return value.padded() if isinstance(value, Ragged) else value


def _rows(func: Any, self: Ragged, *args: Any, **kwargs: Any) -> Any:
    """Index rows by numbers or masks."""
    if not isinstance(self, Ragged):
        return NotImplemented
    index = args[0]
    if len(index) > self.first.dim():
        return NotImplemented
    return self._with(self.content, func(self.first, index, **kwargs), func(self.used, index, **kwargs))


def _along(func: Any, self: Ragged, *args: Any, **kwargs: Any) -> Any:
    """Do something along one batch dimension, the first argument."""
    dim = (args[0] if args else kwargs.pop("dim", 0)) % self.dim() if isinstance(self, Ragged) else 0
    if not isinstance(self, Ragged) or dim >= self.first.dim():
        return NotImplemented
    first, used = (func(each, dim, *args[1:], **kwargs) for each in (self.first, self.used))
    if isinstance(first, Tensor):
        return self._with(self.content, first, used)
    return [self._with(self.content, *each) for each in zip(first, used, strict=True)]


def _split(func: Any, self: Ragged, size: Any, dim: int = 0) -> Any:
    """Split along a batch dimension."""
    if dim % self.dim() >= self.first.dim():
        return NotImplemented
    parts = zip(func(self.first, size, dim), func(self.used, size, dim), strict=True)
    return [self._with(self.content, first, used) for first, used in parts]


def _unsqueeze(func: Any, self: Ragged, dim: int) -> Any:
    dim = dim % (self.dim() + 1)
    if dim > self.first.dim():
        return NotImplemented
    return self._with(self.content, func(self.first, dim), func(self.used, dim))


def _reshape(func: Any, self: Ragged, shape: Sequence[int], **_: Any) -> Any:
    """Reshape or expand the batch dimensions."""
    rest = self.shape[self.first.dim() :]
    shape = list(shape)
    if -1 in shape and func in (aten.view.default, aten._unsafe_view.default):
        others = -torch.Size(shape).numel()
        shape[shape.index(-1)] = self.numel() // others if others else 0
    lead = len(shape) - len(rest)
    if lead < 0 or any(size not in (-1, own) for size, own in zip(shape[lead:], rest, strict=True)):
        return NotImplemented
    apply = Tensor.reshape if func in (aten.view.default, aten._unsafe_view.default) else Tensor.expand
    return self._with(self.content, apply(self.first, shape[:lead]), apply(self.used, shape[:lead]))


def _same(_func: Any, self: Ragged, *_: Any, **__: Any) -> Any:
    """Copy or alias the rows; the content is never written to, so it is shared."""
    return self._with(self.content, self.first.clone(), self.used.clone())


def _each(func: Any, self: Ragged, *args: Any, **kwargs: Any) -> Any:
    """Convert every number; zeros stay zeros."""
    kwargs.pop("memory_format", None)
    content, device = func(self.content, *args, **kwargs), kwargs.get("device") or self.device
    return self._with(content, self.first.to(device), self.used.to(device))


def _clamp(func: Any, self: Ragged, low: float | None = None, high: float | None = None) -> Any:
    """Clamp every number, where zero stays zero."""
    if (low is not None and low > 0) or (high is not None and high < 0):
        return NotImplemented
    return _each(func, self, low, high)


def _joined(func: Any, tensors: Sequence[Tensor], dim: int = 0) -> Any:
    """Concatenate or stack along a batch dimension; contents that are the same tensor are kept once."""
    if not all(isinstance(each, Ragged) for each in tensors):
        return NotImplemented
    rows: Sequence[Ragged] = tensors  # type: ignore[assignment]
    head, extra = rows[0], int(func is aten.stack.default)
    dim = dim % (head.dim() + extra)
    if dim >= head.first.dim() + extra or any(each.slots != head.slots for each in rows):
        return NotImplemented
    contents: dict[int, Tensor] = {id(each.content): each.content for each in rows}
    offset, total = {}, 0
    for name, content in contents.items():
        offset[name], total = total, total + len(content)
    content = next(iter(contents.values())) if len(contents) == 1 else torch.cat(list(contents.values()))
    first = func([each.first + offset[id(each.content)] for each in rows], dim)
    return head._with(content, first, func([each.used for each in rows], dim))


_HANDLERS: dict[Any, Callable[..., Any]] = {
    aten.index.Tensor: _rows,
    **dict.fromkeys((aten.select.int, aten.slice.Tensor, aten.unbind.int), _along),
    **dict.fromkeys((aten.index_select.default, aten.squeeze.dim), _along),
    **dict.fromkeys((aten.split.Tensor, aten.split_with_sizes.default), _split),
    aten.unsqueeze.default: _unsqueeze,
    **dict.fromkeys((aten.view.default, aten._unsafe_view.default, aten.expand.default), _reshape),
    **dict.fromkeys((aten.clone.default, aten.detach.default, aten.alias.default), _same),
    aten._to_copy.default: _each,
    aten.clamp.default: _clamp,
    **dict.fromkeys((aten.cat.default, aten.stack.default), _joined),
}
_WRITES = {aten.copy_.default, aten.fill_.Scalar, aten.zero_.default, aten.index_put_.default}
