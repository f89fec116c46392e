"""Which tails a head is known to have, and which heads a tail, for many questions at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KnownAnswers:
    """Answers grouped by question.

    Args:
        keys: `[n]` sorted, one for each known atom, equal where the question is.
        answers: `[n]` the entity that answers it, each once for a question.
        base: larger than any id of an entity.
    """

    keys: Tensor
    answers: Tensor
    base: int

    @classmethod
    def of(cls, predicates: Tensor, given: Tensor, answers: Tensor, *, num_entities: int) -> KnownAnswers:
        """The answers to questions (predicate, given entity), all `[n]`; what is repeated counts once."""
        base = num_entities + 1
        keys = torch.unique((predicates * base + given) * base + answers)
        return cls(keys // base, keys % base, base)

    @classmethod
    def tails(cls, atoms: Tensor, *, num_entities: int) -> KnownAnswers:
        """The tails of (predicate, head) in atoms `[n, 3]`."""
        predicate, head, tail = atoms.unbind(-1)
        return cls.of(predicate, head, tail, num_entities=num_entities)

    @classmethod
    def heads(cls, atoms: Tensor, *, num_entities: int) -> KnownAnswers:
        """The heads of (predicate, tail) in atoms `[n, 3]`."""
        predicate, head, tail = atoms.unbind(-1)
        return cls.of(predicate, tail, head, num_entities=num_entities)

    def of_questions(self, predicates: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """All answers to m questions: which question, `[k]`, and which entity, `[k]`."""
        wanted = predicates * self.base + given
        first = torch.searchsorted(self.keys, wanted)
        count = torch.searchsorted(self.keys, wanted, right=True) - first
        owner = torch.repeat_interleave(torch.arange(len(wanted), device=wanted.device), count)
        offset = torch.arange(len(owner), device=wanted.device) - (count.cumsum(0) - count)[owner]
        return owner, self.answers[first[owner] + offset]
