"""Rules of a knowledge graph."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

Atom = tuple[int, int, int]
"""Ids in the order (predicate, first argument, second argument); variables of a rule are negative."""


@dataclass(frozen=True)
class Rule:
    """An implication from a body of atoms to a head.

    Args:
        identifier: the id in the file.
        weight: the number in the file, such as a confidence; resolution itself does not use it.
        head: the conclusion. Variables are −1, −2, … by first appearance, the head before the body.
        body: the conditions, at least one atom; contains every variable of the head.
        support: conclusions in the training data that are true, if known.
        body_size: conclusions in the training data, if known.
    """

    identifier: str
    weight: float
    head: Atom
    body: tuple[Atom, ...]
    support: int | None = None
    body_size: int | None = None

    @property
    def evidence(self) -> str:
        """The weight, and how many conclusions are true where that is known: `0.91, 52 of 55`."""
        if self.support is None or self.body_size is None:
            return f"{self.weight:.3g}"
        return f"{self.weight:.3g}, {self.support:,} of {self.body_size:,}"

    def text(self, vocabulary: Vocabulary) -> str:
        """Format the rule with names."""
        body = ", ".join(map(vocabulary.text, self.body))
        return f"{body} -> {vocabulary.text(self.head)}"
