"""Known answers of questions (predicate, head, ?) and (predicate, ?, tail), batched."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KnownAnswers:
    """Known answers grouped by question.

    Args:
        keys: `[n]` sorted, one per known atom; equal for equal questions.
        answers: `[n]` the answers, distinct within a question.
        base: larger than any id of an entity.
    """

    keys: Tensor
    answers: Tensor
    base: int

    @classmethod
    def of(cls, predicates: Tensor, given: Tensor, answers: Tensor, *, num_entities: int) -> KnownAnswers:
        """Group answers by question (predicate, given entity), all `[n]`; duplicates are removed."""
        base = num_entities + 1
        keys = torch.unique((predicates * base + given) * base + answers)
        return cls(keys // base, keys % base, base)

    @classmethod
    def tails(cls, atoms: Tensor, *, num_entities: int) -> KnownAnswers:
        """Group the tails of atoms `[n, 3]` by (predicate, head)."""
        predicate, head, tail = atoms.unbind(-1)
        return cls.of(predicate, head, tail, num_entities=num_entities)

    @classmethod
    def heads(cls, atoms: Tensor, *, num_entities: int) -> KnownAnswers:
        """Group the heads of atoms `[n, 3]` by (predicate, tail)."""
        predicate, head, tail = atoms.unbind(-1)
        return cls.of(predicate, tail, head, num_entities=num_entities)

    def of_questions(self, predicates: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return all answers to m questions: the row of the question, `[k]`, and the entity, `[k]`."""
        wanted = predicates * self.base + given
        first = torch.searchsorted(self.keys, wanted)
        count = torch.searchsorted(self.keys, wanted, right=True) - first
        owner = torch.repeat_interleave(torch.arange(len(wanted), device=wanted.device), count)
        offset = torch.arange(len(owner), device=wanted.device) - (count.cumsum(0) - count)[owner]
        return owner, self.answers[first[owner] + offset]
