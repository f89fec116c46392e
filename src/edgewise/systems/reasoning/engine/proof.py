"""Proofs for display: the goals of a derivation and its tree of rules and facts."""

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
    """An atom and its justification.

    Attributes:
        atom: ids (predicate, head, tail); unbound terms are variables −1, −2, ….
        by: a rule, whose body is in `children`; a fact; an assumption; or open.
        rule: the number of the rule, if `by` is one.
        children: the atoms of the rule's body.
    """

    atom: Atom
    by: By
    rule: int | None = None
    children: tuple[ProofNode, ...] = ()

    def text(self, dataset: Dataset, *, indent: str = "") -> str:
        """Format the tree as indented lines, each with its rule and evidence, or `fact`."""
        reason: str = self.by
        if self.rule is not None:
            rule = dataset.rules[self.rule]
            told = rule.support is not None or rule.weight != 1
            reason = f"{rule.identifier}: {rule.evidence}" if told else rule.identifier
        lines = [f"{indent}{dataset.vocabulary.text(self.atom)}  [{reason}]"]
        return "\n".join([*lines, *(child.text(dataset, indent=indent + "  ") for child in self.children)])


@dataclass(frozen=True)
class Derivation:
    """A sequence of resolution steps from a query.

    Attributes:
        query: the query.
        states: the goals, each a tuple of atoms; the last one is empty if the derivation is a proof.
        origins: the clause of each step: the number of a rule, −1 − the row of a fact, or `NO_CLAUSE` for an
            assumption.
        tree: the proof tree of the query.
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
    """Resolve the first atom of each goal with these clauses, step by step, starting from `query`.

    Known facts other than the query are dropped, as in the engine.

    Raises:
        ValueError: a clause does not fit.
    """
    return _Resolution(dataset, query).run(origins)


def prove(
    dataset: Dataset, query: Sequence[int], *, depth: int, max_atoms: int = 6, cap: int | None = CAP
) -> Derivation | None:
    """Find a shortest proof of `query` within `depth` steps by exhaustive search, or return None."""
    program = Program.of(dataset, max_atoms=max_atoms)
    queries = torch.tensor([list(query)])
    atoms, seen = start(queries, max_atoms=max_atoms), torch.zeros(0, dtype=torch.int64)
    levels: list[tuple[Tensor, Tensor]] = []
    for _ in range(depth):
        found = expand(program, atoms, excluded=queries.expand(len(atoms), 3), cap=cap, counted=True)
        proofs = found.proved.nonzero().squeeze(-1)
        if len(proofs):
            origins = [int(found.origin[found.offsets[proofs[0]]])]
            return derive(dataset, query, _trace_back(levels, int(proofs[0]), origins))
        code = goal_hash(found.successors)
        fresh = ~found.failed[found.owner] & ~torch.isin(code, seen)
        rows = fresh.nonzero().squeeze(-1)
        levels.append((found.owner[rows], found.origin[rows]))
        atoms, seen = found.successors[rows], torch.cat((seen, code[rows]))
        if not len(rows):
            return None
    return None


def _trace_back(levels: list[tuple[Tensor, Tensor]], row: int, origins: list[int]) -> list[int]:
    """Prepend to `origins` the clauses from the query to a goal of the last level."""
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


class _Resolution:
    """Resolution of one goal that keeps the position of every atom in the tree. Variables are negative."""

    def __init__(self, dataset: Dataset, query: Sequence[int]) -> None:
        self.dataset = dataset
        self.query: Atom = (int(query[0]), int(query[1]), int(query[2]))
        self.facts = {tuple(row) for row in dataset.facts.tolist()} - {self.query}
        self.bindings: dict[int, int] = {}
        self.names = count(1)
        self.root = _Open(self.query)
        self.goal = [self.root]

    def run(self, origins: Sequence[int]) -> Derivation:
        states = [self._state()]
        for origin in origins:
            if not self.goal:
                raise ValueError(f"got {len(origins)} steps, but {len(states) - 1} complete the proof")
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
        pairs = zip(self._substituted(left), self._substituted((right[0], right[1], right[2])), strict=True)
        for one, other in pairs:
            one, other = self._term(one), self._term(other)
            if one < 0:
                self.bindings[one] = other
            elif other < 0:
                self.bindings[other] = one
            if one > 0 and other > 0 and one != other:
                raise ValueError(f"the clause {right} does not fit the atom {self._substituted(left)}")

    def _drop_known(self) -> None:
        for node in self.goal:
            if self._substituted(node.atom) in self.facts:
                node.by = "fact"
        self.goal = [node for node in self.goal if node.by == "open"]

    def _term(self, term: int) -> int:
        while term in self.bindings and self.bindings[term] != term:
            term = self.bindings[term]
        return term

    def _substituted(self, atom: Atom) -> Atom:
        return atom[0], self._term(atom[1]), self._term(atom[2])

    def _state(self) -> tuple[Atom, ...]:
        return tuple(self._substituted(node.atom) for node in self.goal)

    def _node(self, node: _Open) -> ProofNode:
        children = tuple(map(self._node, node.children))
        return ProofNode(self._substituted(node.atom), node.by, node.rule, children)
