"""Proofs to be shown: the goals a derivation goes through, and the tree of rules and facts that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

import torch
from torch import Tensor

from edgewise.systems.reasoning.dynamics import start
from edgewise.systems.reasoning.engine.canonical import goal_hash
from edgewise.systems.reasoning.engine.expand import NO_CLAUSE, expand
from edgewise.systems.reasoning.engine.oracle import CAP
from edgewise.systems.reasoning.engine.program import Program
from edgewise.systems.reasoning.knowledge.dataset import Dataset
from edgewise.systems.reasoning.knowledge.rules import Atom

By = Literal["rule", "fact", "assumed", "open"]


@dataclass(frozen=True)
class ProofNode:
    """An atom and why it holds.

    Attributes:
        atom: ids (predicate, head, tail); what no step has bound is a variable, −1, −2, ….
        by: a rule, whose body the children are; a fact; an assumption; or nothing yet.
        rule: the number of the rule, if it is one.
        children: the atoms of the rule's body.
    """

    atom: Atom
    by: By
    rule: int | None = None
    children: tuple[ProofNode, ...] = ()

    def text(self, dataset: Dataset, *, indent: str = "") -> str:
        """The tree as indented lines, each with the rule or the word that says why."""
        why = dataset.rules[self.rule].identifier if self.rule is not None else self.by
        lines = [f"{indent}{dataset.vocabulary.text(self.atom)}  [{why}]"]
        return "\n".join([*lines, *(child.text(dataset, indent=indent + "  ") for child in self.children)])


@dataclass(frozen=True)
class Derivation:
    """A way from a query towards the empty goal.

    Attributes:
        query: what was asked.
        states: the goals it went through, each a tuple of atoms, the last one empty if it is a proof.
        origins: the clause of each step: the number of a rule, −1 − the row of a fact, or `NO_CLAUSE` for an
            assumption.
        tree: the query with everything below it.
    """

    query: Atom
    states: tuple[tuple[Atom, ...], ...]
    origins: tuple[int, ...]
    tree: ProofNode

    @property
    def complete(self) -> bool:
        """Whether nothing is left to prove."""
        return not self.states[-1]


def derive(dataset: Dataset, query: Sequence[int], origins: Sequence[int]) -> Derivation:
    """The derivation of `query` that uses these clauses, step by step, on the first atom of each goal.

    Known facts other than the query are dropped as the engine drops them. Raises ValueError where a clause
    does not fit.
    """
    return _Deriving(dataset, query).run(origins)


def prove(
    dataset: Dataset, query: Sequence[int], *, depth: int, max_atoms: int = 6, cap: int | None = CAP
) -> Derivation | None:
    """A shortest proof of `query` in at most `depth` steps, or None if exhaustive search finds none."""
    program = Program.of(dataset, max_atoms=max_atoms)
    asked = torch.tensor([list(query)])
    atoms, seen = start(asked, max_atoms=max_atoms), torch.zeros(0, dtype=torch.int64)
    levels: list[tuple[Tensor, Tensor]] = []
    for _ in range(depth):
        found = expand(program, atoms, excluded=asked.expand(len(atoms), 3), cap=cap, counted=True)
        proofs = found.proved.nonzero().squeeze(-1)
        if len(proofs):
            origins = [int(found.origin[found.offsets[proofs[0]]])]
            return derive(dataset, query, _back(levels, int(proofs[0]), origins))
        code = goal_hash(found.successors)
        fresh = ~found.failed[found.owner] & ~torch.isin(code, seen)
        rows = fresh.nonzero().squeeze(-1)
        levels.append((found.owner[rows], found.origin[rows]))
        atoms, seen = found.successors[rows], torch.cat((seen, code[rows]))
        if not len(rows):
            return None
    return None


def _back(levels: list[tuple[Tensor, Tensor]], row: int, origins: list[int]) -> list[int]:
    """The clauses from the query to a goal of the last level, before those in `origins`."""
    for owner, origin in reversed(levels):
        origins.insert(0, int(origin[row]))
        row = int(owner[row])
    return origins


@dataclass
class _Open:
    atom: Atom
    by: By = "open"
    rule: int | None = None
    children: list[_Open] = field(default_factory=list)


class _Deriving:
    """Resolution on one goal with every atom's place in the tree remembered. Variables are negative."""

    def __init__(self, dataset: Dataset, query: Sequence[int]) -> None:
        self.dataset = dataset
        self.query: Atom = (int(query[0]), int(query[1]), int(query[2]))
        self.facts = {tuple(row) for row in dataset.facts.tolist()} - {self.query}
        self.bound: dict[int, int] = {}
        self.names = count(1)
        self.root = _Open(self.query)
        self.goal = [self.root]

    def run(self, origins: Sequence[int]) -> Derivation:
        states = [self._state()]
        for origin in origins:
            if not self.goal:
                raise ValueError(f"{len(origins)} steps, but the proof was complete after {len(states) - 1}")
            self._step(self.goal.pop(0), int(origin))
            self._drop_known()
            states.append(self._state())
        return Derivation(self.query, tuple(states), tuple(map(int, origins)), self._node(self.root))

    def _step(self, node: _Open, origin: int) -> None:
        if origin == NO_CLAUSE:
            node.by = "assumed"
        elif origin < 0:
            node.by = "fact"
            self._unify(node.atom, tuple(self.dataset.facts[-1 - origin].tolist()))
        else:
            node.by, node.rule = "rule", origin
            fresh: dict[int, int] = {}
            head, *body = (
                self._renamed(atom, fresh)
                for atom in (self.dataset.rules[origin].head, *self.dataset.rules[origin].body)
            )
            self._unify(node.atom, head)
            node.children = [_Open(atom) for atom in body]
            self.goal = [*node.children, *self.goal]

    def _renamed(self, atom: Atom, fresh: dict[int, int]) -> Atom:
        for term in atom[1:]:
            if term < 0 and term not in fresh:
                fresh[term] = -next(self.names)
        return atom[0], fresh.get(atom[1], atom[1]), fresh.get(atom[2], atom[2])

    def _unify(self, left: Atom, right: tuple[int, ...]) -> None:
        for one, other in zip(self._now(left), self._now((right[0], right[1], right[2])), strict=True):
            one, other = self._term(one), self._term(other)
            if one < 0:
                self.bound[one] = other
            elif other < 0:
                self.bound[other] = one
            if one > 0 and other > 0 and one != other:
                raise ValueError(f"the clause {right} does not fit the atom {self._now(left)}")

    def _drop_known(self) -> None:
        for node in self.goal:
            if self._now(node.atom) in self.facts:
                node.by = "fact"
        self.goal = [node for node in self.goal if node.by == "open"]

    def _term(self, term: int) -> int:
        while term in self.bound and self.bound[term] != term:
            term = self.bound[term]
        return term

    def _now(self, atom: Atom) -> Atom:
        return atom[0], self._term(atom[1]), self._term(atom[2])

    def _state(self) -> tuple[Atom, ...]:
        return tuple(self._now(node.atom) for node in self.goal)

    def _node(self, node: _Open) -> ProofNode:
        return ProofNode(self._now(node.atom), node.by, node.rule, tuple(map(self._node, node.children)))
