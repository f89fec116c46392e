"""Rules compiled for prediction: all entities that rules conclude for a batch of questions, and by which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from edgewise.systems.reasoning.knowledge.rules import Atom, Rule
from edgewise.systems.reasoning.mining.properties import ANY, SELF, Properties
from edgewise.systems.reasoning.mining.relations import Body, Ints, Relations

LONGEST_CHAIN = 3


@dataclass(frozen=True)
class _PropertyRule:
    """A rule from one property of X to another, each (directed relation, value)."""

    head: tuple[int, int]
    body: tuple[int, int]


class RuleBook:
    """Rules that answer questions r(x, ?) for directed relations r, in one step from the facts.

    Chains of up to three atoms between the arguments of the head are used, and rules with one atom for one
    variable, such as h(X,c) ← b(X,d), h(X,c) ← b(X,A) and h(X,X) ← b(X,A). Other shapes are left out. The
    entities of a chain differ. Rules are numbered by falling weight, and in the given order on ties.

    Args:
        rules: any rules.
        relations: the facts.

    Attributes:
        order: `[n]` the given place of each used rule, by falling weight.
        weight: `[n]` weights in that order.
        left_out: places of the rules with other shapes.
    """

    def __init__(self, rules: Sequence[Rule], relations: Relations) -> None:
        self.relations = relations
        shapes = [_shape(rule, relations.num_predicates) for rule in rules]
        self.left_out = [place for place, shape in enumerate(shapes) if shape is None]
        used = [place for place, shape in enumerate(shapes) if shape is not None]
        used.sort(key=lambda place: -rules[place].weight)
        self.order = np.array(used, dtype=np.int64)
        self.weight = np.array([rules[place].weight for place in used])
        self._chains: dict[int, list[tuple[int, Body]]] = {}
        unary: list[tuple[int, _PropertyRule]] = []
        for number, place in enumerate(used):
            shape = shapes[place]
            if isinstance(shape, _PropertyRule):
                unary.append((number, shape))
            elif shape is not None:
                self._chains.setdefault(rules[place].head[0] - 1, []).append((number, shape))
        self._properties = Properties.of(relations, min_count=1)
        self._by_entity = self._properties.holders
        self._by_property = self._properties.holders.T.tocsr()
        self._compile_unary(unary)

    def __len__(self) -> int:
        return len(self.order)

    def concluded(self, relation: int, given: Ints) -> Any:
        """Find what the rules conclude for questions relation(x, ?).

        Args:
            relation: directed relation; P + p asks for the heads of predicate p.
            given: `[m]` the x, from 0.

        Returns:
            Sparse matrix `[m · E, n]`: row `i · E + y` has ones at the rules that conclude y for question i.
        """
        found = [*self._by_chains(relation, given), *self._by_properties(relation, given)]
        entities = self.relations.num_entities
        question, candidate, rule = (
            np.concatenate([part[i] for part in found] or [np.zeros(0, dtype=np.int64)]) for i in range(3)
        )
        row = question.astype(np.int64) * entities + candidate
        shape = (len(given) * entities, max(1, len(self)))
        matrix = sparse.coo_matrix((np.ones(len(row), dtype=np.int8), (row, rule)), shape).tocsr()
        matrix.sort_indices()
        return matrix

    def _by_chains(self, relation: int, given: Ints) -> list[tuple[Ints, Ints, Ints]]:
        predicates = self.relations.num_predicates
        parts, taken = [], dict[int, Any]()
        for number, forward in self._chains.get(relation % predicates, []):
            body = forward if relation < predicates else self.relations.reverse(forward)
            if body[0] not in taken:
                taken[body[0]] = self.relations.matrices[body[0]][given]
            if not taken[body[0]].nnz:
                continue
            hit = self.relations.connected(body, given, first=taken[body[0]]).tocoo()
            parts.append((hit.row, hit.col, np.full(hit.nnz, number)))
        return parts

    def _compile_unary(self, rules: list[tuple[int, _PropertyRule]]) -> None:
        """Sort the rules with one variable by the relation and by the value of their heads."""
        number = np.array([one for one, _ in rules], dtype=np.int64)
        table = np.array([(*rule.head, *rule.body) for _, rule in rules], dtype=np.int64).reshape(-1, 4)
        base = self.relations.num_entities + 2
        keys = self._properties.relation * base + self._properties.value + 2
        wanted = table[:, 2] * base + table[:, 3] + 2
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1) if len(keys) else wanted * 0
        known = keys[place] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        number, table, body = number[known], table[known], place[known]
        order = np.lexsort((number, table[:, 1], table[:, 0]))
        self._unary_number, self._unary_body = number[order], body[order]
        self._unary_relation, self._unary_value = table[order, 0], table[order, 1]

    def _by_properties(self, relation: int, given: Ints) -> list[tuple[Ints, Ints, Ints]]:
        predicates = self.relations.num_predicates
        return [
            self._of_given(relation, given),
            self._of_candidates(self.relations.inverse(relation), given),
            self._of_loops(relation % predicates, given),
        ]

    def _rules_of(self, relation: int) -> tuple[int, int]:
        """Return the range of the rules with one variable whose head has this relation."""
        low, high = np.searchsorted(self._unary_relation, [relation, relation + 1])
        return int(low), int(high)

    def _of_given(self, relation: int, given: Ints) -> tuple[Ints, Ints, Ints]:
        """Apply relation(X,c) ← … to the given entities."""
        low, high = self._rules_of(relation)
        constants = low + np.flatnonzero(self._unary_value[low:high] >= 0)
        hit = self._having(given, self._unary_body[constants])
        question, rule = hit.row, constants[hit.col]
        candidate = self._unary_value[rule]
        keep = candidate != given[question]
        return question[keep], candidate[keep], self._unary_number[rule[keep]]

    def _of_loops(self, predicate: int, given: Ints) -> tuple[Ints, Ints, Ints]:
        """Apply predicate(X,X) ← … to the given entities."""
        low, high = self._rules_of(predicate)
        loops = low + np.flatnonzero(self._unary_value[low:high] == SELF)
        hit = self._having(given, self._unary_body[loops])
        return hit.row, given[hit.row], self._unary_number[loops[hit.col]]

    def _of_candidates(self, relation: int, given: Ints) -> tuple[Ints, Ints, Ints]:
        """Apply relation(Y,x) ← … to all entities Y, for the given x."""
        low, high = self._rules_of(relation)
        first = low + np.searchsorted(self._unary_value[low:high], given)
        last = low + np.searchsorted(self._unary_value[low:high], given, side="right")
        question, rule = _ranges(first, last - first)
        pointer = self._by_property.indptr
        body = self._unary_body[rule]
        which, place = _ranges(pointer[body], pointer[body + 1] - pointer[body])
        candidate = self._by_property.indices[place].astype(np.int64)
        question, rule = question[which], rule[which]
        keep = candidate != given[question]
        return question[keep], candidate[keep], self._unary_number[rule[keep]]

    def _having(self, entities: Ints, properties: Ints) -> Any:
        """Return which entities have which properties, `[entities, properties]` sparse."""
        picked = sparse.csr_matrix(
            (np.ones(len(properties), dtype=np.int8), (properties, np.arange(len(properties)))),
            (self._by_entity.shape[1], len(properties)),
        )
        return (self._by_entity[entities].astype(np.int8) @ picked).tocoo()


def _ranges(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return i and `first[i] + k` for all k below `count[i]`, each `[count.sum()]`."""
    owner = np.repeat(np.arange(len(count)), count)
    start = np.repeat(first - (np.cumsum(count) - count), count)
    return owner, np.arange(len(owner)) + start


def _shape(rule: Rule, predicates: int) -> Body | _PropertyRule | None:
    """Return a rule as a chain from the first to the second argument of its head, or as a property rule."""
    predicate, first, second = rule.head
    if first < 0 and second < 0 and first != second:
        return _chain(list(rule.body), first, second, predicates)
    variable = first if first < 0 else second
    if len(rule.body) != 1 or variable >= 0:
        return None
    body = _property(rule.body[0], variable, predicates)
    if body is None:
        return None
    if first == second:
        return _PropertyRule((predicate - 1, SELF), body)
    head = _property(rule.head, variable, predicates)
    assert head is not None
    return _PropertyRule(head, body)


def _property(atom: Atom, variable: int, predicates: int) -> tuple[int, int] | None:
    """Return the property of a variable that an atom states, as (directed relation, value)."""
    predicate, first, second = atom
    if variable not in (first, second):
        return None
    if first == second:
        return predicate - 1, SELF
    other, relation = (second, predicate - 1) if first == variable else (first, predicate - 1 + predicates)
    return relation, (other - 1 if other > 0 else ANY)


def _chain(body: list[Atom], start: int, end: int, predicates: int) -> Body | None:
    """Return the relations of a path from `start` to `end` through all atoms; None if it is no such path."""
    if len(body) > LONGEST_CHAIN:
        return None
    path: list[int] = []
    at, visited = start, {start}
    while body:
        touching = [atom for atom in body if at in atom[1:]]
        if len(touching) != 1:
            return None
        predicate, first, second = touching[0]
        body.remove(touching[0])
        path.append(predicate - 1 if first == at else predicate - 1 + predicates)
        at = second if first == at else first
        if at >= 0 or at in visited or (at == end and body):
            return None
        visited.add(at)
    return tuple(path) if at == end else None
