"""The last expansions of an environment, so that a step does not expand the goals that were just observed.

What is remembered is checked against what is asked, tensor for tensor: it saves work and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.reasoning.engine.expand import Expansion

Asked = tuple[Tensor, ...]


@dataclass(frozen=True)
class _Entry:
    asked: Asked
    versions: tuple[int, ...]
    answer: Expansion

    def is_of(self, asked: Asked) -> bool:
        """Whether these very tensors were asked about, unchanged since."""
        same = all(mine is other for mine, other in zip(self.asked, asked, strict=True))
        return same and self.versions == tuple(tensor._version for tensor in asked)


class Memo:
    """The two newest expansions: of all worlds, and of those that were born last.

    A batch in which some rows were replaced by newborn worlds is answered from both.
    """

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def keep(self, asked: Asked, answer: Expansion) -> None:
        """Remember an answer, in place of the older one of two.

        Not in inference mode, where tensors do not tell whether they were written to since.
        """
        if any(tensor.is_inference() for tensor in asked):
            return
        entry = _Entry(asked, tuple(tensor._version for tensor in asked), answer)
        self._entries = [entry, *self._entries[:1]]

    def recall(self, asked: Asked) -> Expansion | None:
        """The answer to these very tensors, if it is remembered."""
        return next((entry.answer for entry in self._entries if entry.is_of(asked)), None)

    def chosen(self, asked: Asked, place: Tensor) -> Tensor | None:
        """One successor for each of the goals asked about, `[B, A, 3]`; None if they are not remembered."""
        direct = self.recall(asked)
        if direct is not None:
            return direct.chosen(place)
        if len(self._entries) < 2:
            return None
        born, stepped = self._entries
        if len(stepped.asked[0]) != len(asked[0]) or not _unchanged(born) or not _unchanged(stepped):
            return None
        rows = _differing(stepped.asked, asked).nonzero().squeeze(-1)
        if len(rows) != len(born.asked[0]) or _differing(born.asked, [part[rows] for part in asked]).any():
            return None
        atoms = stepped.answer.chosen(place)
        return atoms.index_copy(0, rows, born.answer.chosen(place[rows]))


def _unchanged(entry: _Entry) -> bool:
    return entry.is_of(entry.asked)


def _differing(left: Asked, right: list[Tensor] | Asked) -> Tensor:
    """Which rows `[B]` differ in some tensor."""
    differs = torch.zeros(len(left[0]), dtype=torch.bool)
    for mine, other in zip(left, right, strict=True):
        differs |= (mine != other).flatten(1).any(-1)
    return differs
