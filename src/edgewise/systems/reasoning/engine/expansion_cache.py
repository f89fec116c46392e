"""Cache of the last expansions, so that a step does not expand the goals that were just observed.

Cached inputs are compared with the given ones tensor by tensor, so the cache never changes a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import Expansion

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class _Entry:
    inputs: Inputs
    versions: tuple[int, ...]
    expansion: Expansion

    def matches(self, inputs: Inputs) -> bool:
        """Return whether the inputs are the same tensor objects, unchanged since they were cached."""
        same = all(mine is other for mine, other in zip(self.inputs, inputs, strict=True))
        return same and self.versions == tuple(tensor._version for tensor in inputs)


class ExpansionCache:
    """The two newest expansions: of all worlds after a step, and of the worlds that were reset last.

    A batch in which some rows were replaced by reset worlds is looked up in both.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def put(self, inputs: Inputs, expansion: Expansion) -> None:
        """Store an expansion in place of the older of the two.

        Nothing is stored in inference mode, where tensors have no version counter.
        """
        if any(tensor.is_inference() for tensor in inputs):
            return
        entry = _Entry(inputs, tuple(tensor._version for tensor in inputs), expansion)
        self._entries = [entry, *self._entries[:1]]

    def get(self, inputs: Inputs) -> Expansion | None:
        """Return the expansion of these tensors, or None if it is not cached."""
        return next((entry.expansion for entry in self._entries if entry.matches(inputs)), None)

    def chosen(self, inputs: Inputs, place: Tensor) -> Tensor | None:
        """Return one successor per goal, `[B, A, 3]`, or None if the goals are not cached."""
        direct = self.get(inputs)
        if direct is not None:
            return direct.chosen(place)
        if len(self._entries) < 2:
            return None
        reset, stepped = self._entries
        if len(stepped.inputs[0]) != len(inputs[0]) or not _unchanged(reset) or not _unchanged(stepped):
            return None
        rows = _differing(stepped.inputs, inputs).nonzero().squeeze(-1)
        if len(rows) != len(reset.inputs[0]):
            return None
        if _differing(reset.inputs, [part[rows] for part in inputs]).any():
            return None
        atoms = stepped.expansion.chosen(place)
        return atoms.index_copy(0, rows, reset.expansion.chosen(place[rows]))


def _unchanged(entry: _Entry) -> bool:
    return entry.matches(entry.inputs)


def _differing(left: Inputs, right: list[Tensor] | Inputs) -> Tensor:
    """Return which rows `[B]` differ in some tensor."""
    differs = torch.zeros(len(left[0]), dtype=torch.bool)
    for mine, other in zip(left, right, strict=True):
        differs |= (mine != other).flatten(1).any(-1)
    return differs
