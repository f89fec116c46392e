"""Cache of the last expansions, so that a step does not expand the goals that were just observed.

An expansion is found by the tensors that it was computed from, if they have not changed since. So the cache
never changes a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import Expansion

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class _Entry:
    """An expansion, the goals whose successors it has, and the row of each of them; None for all in order."""

    inputs: Inputs
    versions: tuple[int, ...]
    expansion: Expansion
    rows: Tensor | None = None

    @classmethod
    def of(cls, inputs: Inputs, expansion: Expansion, rows: Tensor | None = None) -> _Entry:
        return cls(inputs, tuple(tensor._version for tensor in inputs), expansion, rows)

    def matches(self, inputs: Inputs) -> bool:
        """Return whether the inputs are the same tensor objects, unchanged since they were cached."""
        same = all(mine is other for mine, other in zip(self.inputs, inputs, strict=True))
        return same and self.versions == tuple(tensor._version for tensor in inputs)


class ExpansionCache:
    """The two newest expansions."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def put(self, inputs: Inputs, expansion: Expansion) -> None:
        """Store an expansion in place of the older of the two.

        Nothing is stored in inference mode, where tensors have no version counter.
        """
        if any(tensor.is_inference() for tensor in inputs):
            return
        self._entries = [_Entry.of(inputs, expansion), *self._entries[:1]]

    def follow(self, inputs: Inputs, done: Tensor) -> None:
        """Let the newest expansion also be found by the goals after a reset.

        Args:
            inputs: of B worlds. The newest expansion is that of all B after the step, followed by those of
                the new worlds in the rows that were done.
            done: `[B]` bool.
        """
        number = done.cumsum(0)
        count, new = len(done), int(number[-1])
        if not new or not self._entries or len(self._entries[0].inputs[0]) != count + new:
            return
        rows = torch.where(done, number + (count - 1), torch.arange(count))
        self._entries[0] = _Entry.of(inputs, self._entries[0].expansion, rows)

    def get(self, inputs: Inputs) -> Expansion | None:
        """Return the expansion of these tensors, or None if it is not cached."""
        found = self._find(inputs)
        return found.expansion if found is not None and found.rows is None else None

    def chosen(self, inputs: Inputs, place: Tensor) -> Tensor | None:
        """Return one successor per goal, `[B, A, 3]`, or None if the goals are not cached."""
        found = self._find(inputs)
        return None if found is None else found.expansion.chosen(place, rows=found.rows)

    def _find(self, inputs: Inputs) -> _Entry | None:
        return next((entry for entry in self._entries if entry.matches(inputs)), None)
