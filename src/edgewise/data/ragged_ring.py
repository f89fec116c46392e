"""A ring of rows of different lengths: the live slots of graphs in a replay buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from edgewise.graphs.ragged import Ragged, row_numbers

Name = tuple[str, ...]


class RaggedRing:
    """The ragged entries of the transitions of a replay buffer that have the same number K of slots.

    They share how many slots a transition uses, the most that one of them does. Slots are numbered from the
    first that was ever written and never moved; number n is at place n modulo the size of the pool, which
    grows when the slots of all transitions do not fit.

    Args:
        capacity: transitions.
        like: an entry of each name, for types and shapes.
    """

    def __init__(self, capacity: int, like: Mapping[Name, Ragged]) -> None:
        self.places = {name: each.place for name, each in like.items()}
        self.slots = next(iter(like.values())).slots
        self._pools = {name: each.content[:0].clone() for name, each in like.items()}
        self._first = torch.zeros(capacity, dtype=torch.int64)
        self._used = torch.zeros(capacity, dtype=torch.int32)
        self._begin, self._end = 0, 0

    @property
    def names(self) -> list[Name]:
        """The names of the entries."""
        return list(self._pools)

    def bytes_of(self, size: int) -> int:
        """Return the bytes of the first `size` transitions."""
        slot = sum(pool.element_size() * pool.shape[1:].numel() for pool in self._pools.values())
        each = self._first.element_size() + self._used.element_size()
        return int(self._used[:size].sum()) * slot + size * each

    def write(self, index: Tensor, entries: Mapping[Name, Ragged], *, oldest: int | None) -> None:
        """Write transitions `[M]` to the places `index`.

        Args:
            index: `[M]`, different places.
            entries: by name, `[M]` each.
            oldest: the place of the oldest transition that stays; None if none does.
        """
        used = torch.stack([each.used for each in entries.values()]).amax(0)
        first = self._end + used.cumsum(0) - used
        self._begin = self._end if oldest is None else int(self._first[oldest])
        end = self._end + int(used.sum())
        self._reserve(end - self._begin)
        self._first[index], self._used[index] = first, used.to(torch.int32)
        for name, each in entries.items():
            pool = self._pools[name]
            pool[row_numbers(first, used) % len(pool)] = 0
            target = row_numbers(first, each.used) % len(pool)
            pool[target] = each.content.index_select(0, row_numbers(each.first, each.used))
        self._end = end

    def read(self, index: Tensor) -> dict[Name, Ragged]:
        """Return the transitions at the places `index [M]`, which are copied."""
        used = self._used.index_select(0, index).long()
        number = row_numbers(self._first.index_select(0, index), used)
        first = used.cumsum(0) - used
        return {
            name: Ragged(
                pool.index_select(0, number % max(1, len(pool))),
                first,
                used,
                slots=self.slots,
                place=self.places[name],
            )
            for name, pool in self._pools.items()
        }

    def state_dict(self, size: int) -> dict[str, Any]:
        """Return the first `size` transitions."""
        found = self.read(torch.arange(size))
        return {
            "slots": self.slots,
            "used": self._used[:size].clone(),
            "places": {".".join(name): place for name, place in self.places.items()},
            "content": {".".join(name): each.content for name, each in found.items()},
        }

    @classmethod
    def from_state(cls, capacity: int, state: Mapping[str, Any], *, oldest: int) -> RaggedRing:
        """Return the ring of a state, of which the transition at the place `oldest` is the first."""
        used = state["used"].long()
        first = used.cumsum(0) - used
        entries = {
            tuple(name.split(".")): Ragged(
                content, first, used, slots=int(state["slots"]), place=int(state["places"][name])
            )
            for name, content in state["content"].items()
        }
        ring = cls(capacity, entries)
        order = torch.arange(len(used)).roll(-oldest)
        ring.write(order, {name: each.at(order) for name, each in entries.items()}, oldest=None)
        return ring

    def _reserve(self, needed: int) -> None:
        """Make the pools hold `needed` slots from `_begin` on, those up to `_end` included."""
        size = len(next(iter(self._pools.values())))
        if needed <= size:
            return
        larger = max(needed, 2 * size)
        number = torch.arange(self._begin, self._end)
        for name, pool in self._pools.items():
            grown = pool.new_zeros(larger, *pool.shape[1:])
            if len(number):
                grown[number % larger] = pool.index_select(0, number % size)
            self._pools[name] = grown
