"""Facts and rules compiled to tensors for resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.index import FactIndex
from edgewise.systems.reasoning.knowledge.placement import to_device
from edgewise.systems.reasoning.knowledge.rules import Rule
from edgewise.systems.reasoning.knowledge.vocabulary import Vocabulary

OWN, FIRST, SECOND = 0, 1, 2
"""Source of a term in a rule's body: the rule itself, or the first or second argument of its head."""


@dataclass(frozen=True)
class Program:
    """A definite program over binary predicates, for goals of at most `max_atoms` atoms.

    Terms are entities 1..E and variables above them. A goal's own variables are E+1..E+2A, numbered by first
    appearance; E+2A+1 and up are fresh variables of a rule, which exist only within one expansion.
    Rules are sorted by the predicate of their head, in the given order within one predicate.

    Attributes:
        facts: the facts.
        vocabulary: sizes and the ids of special predicates.
        max_atoms: A.
        head: `[R, 2]` int32, arguments of the heads: an entity, or 0 for a variable.
        same_head: `[R]` bool, both arguments of the head are one variable.
        body_predicate: `[R, M]` int32, 0 for padding.
        body_term: `[R, M, 2]` int32, entities and fresh variables.
        body_role: `[R, M, 2]` int8, one of `OWN`, `FIRST`, `SECOND`.
        rule: `[R]` int64, the number of each rule in its original order.
        rule_start: `[P' + 1]` int64, the first rule of each predicate id.
        rule_count: `[P' + 1]` int64, the number of rules of each predicate id.
        most_rules: maximum number of rules of one predicate.
        max_fresh: maximum number of fresh variables of a rule.
        plain_heads: whether all heads are two different variables, so that they bind nothing.
        head_key: `[R]` int64, ascending keys of heads for `matching_rules`.
        head_row: `[R]` int64, the rule of each key.
    """

    facts: FactIndex
    vocabulary: Vocabulary
    max_atoms: int
    head: Tensor
    same_head: Tensor
    body_predicate: Tensor
    body_term: Tensor
    body_role: Tensor
    rule: Tensor
    rule_start: Tensor
    rule_count: Tensor
    most_rules: int
    max_fresh: int
    plain_heads: bool
    head_key: Tensor
    head_row: Tensor

    @classmethod
    def of(cls, dataset: Dataset, *, max_atoms: int) -> Program:
        """Compile the facts and rules of a dataset."""
        return cls.compile(dataset.facts, dataset.rules, vocabulary=dataset.vocabulary, max_atoms=max_atoms)

    @classmethod
    def compile(
        cls,
        facts: Tensor,
        rules: Sequence[Rule],
        *,
        vocabulary: Vocabulary,
        max_atoms: int,
        rows: Tensor | None = None,
    ) -> Program:
        """Compile facts `[n, 3]`, or some of their `rows` `[k]`, and rules."""
        index = FactIndex(
            facts,
            num_predicates=vocabulary.num_predicates,
            num_entities=vocabulary.num_entities,
            rows=rows,
        )
        order = sorted(range(len(rules)), key=lambda number: rules[number].head[0])
        longest = max((len(rule.body) for rule in rules), default=1)
        first_fresh = vocabulary.num_entities + 2 * max_atoms + 1
        compiled = [_compile_rule(rules[number], longest, first_fresh) for number in order]
        predicates = torch.tensor([rules[number].head[0] for number in order], dtype=torch.int64)
        count = torch.bincount(predicates, minlength=vocabulary.num_predicate_ids + 1)
        shape = (len(rules), longest)
        head = _tensor([row.head for row in compiled], (len(rules), 2))
        head_key, head_row = _head_keys(predicates, head.long(), vocabulary).sort(stable=True)
        return cls(
            facts=index,
            vocabulary=vocabulary,
            max_atoms=max_atoms,
            head=head,
            same_head=_tensor([row.same_head for row in compiled], (len(rules),), torch.bool),
            body_predicate=_tensor([row.predicate for row in compiled], shape),
            body_term=_tensor([row.term for row in compiled], (*shape, 2)),
            body_role=_tensor([row.role for row in compiled], (*shape, 2), torch.int8),
            rule=_tensor(order, (len(rules),), torch.int64),
            rule_start=count.cumsum(0) - count,
            rule_count=count,
            most_rules=int(count.max()),
            max_fresh=max((row.fresh for row in compiled), default=0),
            plain_heads=not any(row.same_head or any(row.head) for row in compiled),
            head_key=head_key,
            head_row=head_row,
        )

    def matching_rules(self, atoms: Tensor) -> tuple[Tensor, Tensor]:
        """Find rules whose heads may unify with atoms `[B, 3]`: start and count in `head_row`, each `[B, 3]`.

        Heads without a constant, with one in the first place, and with one in the second place alone form
        three sections. Within a section they are sorted by predicate and constant, so a bound argument needs
        one range of few rules, however many rules there are.
        """
        words, base = self.vocabulary, self.vocabulary.num_entities + 1
        predicate, *arguments = atoms.to(torch.int64).unbind(-1)
        lows, spans = [predicate * base], [torch.ones_like(predicate)]
        for section, argument in enumerate(arguments, 1):
            free = argument > words.num_entities
            start = (section * (words.num_predicate_ids + 1) + predicate) * base
            lows.append(start + torch.where(free, 0, argument))
            spans.append(torch.where(free, base, 1))
        low, span = torch.stack(lows, -1), torch.stack(spans, -1)
        start = torch.searchsorted(self.head_key, low)
        return start, torch.searchsorted(self.head_key, low + span) - start

    @property
    def max_variables(self) -> int:
        """Maximum number of variables of a goal, `2A`, which sizes tables of terms."""
        return 2 * self.max_atoms

    @property
    def num_term_ids(self) -> int:
        """The largest id of a term in a goal."""
        return self.vocabulary.num_term_ids(self.max_variables)

    def to(self, device: torch.device | str) -> Program:
        """Return a copy on another device."""
        tensors: dict[str, Any] = {
            field.name: to_device(getattr(self, field.name), device)
            for field in fields(self)
            if isinstance(getattr(self, field.name), Tensor)
        }
        return replace(self, facts=self.facts.to(device), **tensors)


@dataclass(frozen=True)
class _Compiled:
    head: list[int]
    same_head: bool
    predicate: list[int]
    term: list[list[int]]
    role: list[list[int]]
    fresh: int


def _compile_rule(rule: Rule, longest: int, first_fresh: int) -> _Compiled:
    """Compile one rule."""
    first, second = rule.head[1:]
    role = {second: SECOND} | {first: FIRST}
    role = {variable: place for variable, place in role.items() if variable < 0}
    fresh: dict[int, int] = {}
    terms, roles = [], []
    for _, *arguments in rule.body:
        own = [term < 0 and term not in role for term in arguments]
        terms.append(
            [
                fresh.setdefault(term, first_fresh + len(fresh)) if new else max(term, 0)
                for term, new in zip(arguments, own, strict=True)
            ]
        )
        roles.append([role.get(term, OWN) for term in arguments])
    padding = longest - len(rule.body)
    return _Compiled(
        head=[max(first, 0), max(second, 0)],
        same_head=first < 0 and first == second,
        predicate=[atom[0] for atom in rule.body] + [0] * padding,
        term=terms + [[0, 0]] * padding,
        role=roles + [[OWN, OWN]] * padding,
        fresh=len(fresh),
    )


def _head_keys(predicate: Tensor, head: Tensor, words: Vocabulary) -> Tensor:
    """Return the key of each head, `[R]`, from its predicate `[R]` and its constants `[R, 2]`, 0 for none."""
    first, second = head.unbind(-1)
    section = torch.where(first > 0, 1, torch.where(second > 0, 2, 0))
    constant = torch.where(first > 0, first, second)
    return (section * (words.num_predicate_ids + 1) + predicate) * (words.num_entities + 1) + constant


def _tensor(rows: Sequence[object], shape: tuple[int, ...], dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.tensor(rows, dtype=dtype).reshape(shape)
