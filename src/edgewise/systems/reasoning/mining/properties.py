"""Properties of entities, such as "lives in Oslo", "lives anywhere" or "likes itself", as sparse columns.

Rules with constants go from one property of an entity to another. One sparse product counts all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from edgewise.systems.reasoning.mining.relations import Ints, Relations

ANY, SELF = -1, -2
"""Instead of an entity d of a property r(X,d): some entity r(X,A), and X itself r(X,X)."""
AT_ONCE = 1024
"""Heads that are counted in one product."""


@dataclass(frozen=True)
class Properties:
    """Properties r(X,d), r(X,A) and r(X,X) that enough entities have.

    Attributes:
        relation: `[I]` directed relation r.
        value: `[I]` the entity d from 0, or `ANY` or `SELF`.
        holders: `[E, I]` sparse, ones where entity x has property i.
    """

    relation: Ints
    value: Ints
    holders: Any

    @classmethod
    def of(cls, relations: Relations, *, min_count: int) -> Properties:
        """Collect the properties with at least `min_count` entities."""
        entities = relations.num_entities
        predicate, looped = relations.loops
        source = np.concatenate([relations.source, looped])
        relation = np.concatenate([relations.relation, predicate])
        value = np.concatenate([relations.target, np.full_like(looped, SELF)])
        some = np.unique(np.stack([relations.source, relations.relation]), axis=1)
        source = np.concatenate([source, some[0]])
        relation = np.concatenate([relation, some[1]])
        value = np.concatenate([value, np.full(some.shape[1], ANY)])
        key, column, count = np.unique(
            relation * (entities + 2) + value + 2, return_inverse=True, return_counts=True
        )
        number = np.cumsum(count >= min_count) - 1
        kept = count[column] >= min_count
        key = key[count >= min_count]
        holders = sparse.csr_matrix(
            (np.ones(int(kept.sum()), dtype=np.int32), (source[kept], number[column[kept]])),
            (entities, len(key)),
        )
        return cls(key // (entities + 2), key % (entities + 2) - 2, holders)

    def __len__(self) -> int:
        return len(self.relation)


@dataclass(frozen=True)
class PropertyRules:
    """Rules from one property of X to another, such as h(X,c) ← b(X,d).

    Attributes:
        head: `[n]` property concluded, never `ANY`.
        body: `[n]` property required.
        support: `[n]` entities with both.
        body_size: `[n]` entities with the body.
    """

    head: Ints
    body: Ints
    support: Ints
    body_size: Ints

    def __getitem__(self, rows: NDArray[Any]) -> PropertyRules:
        return PropertyRules(self.head[rows], self.body[rows], self.support[rows], self.body_size[rows])

    def __len__(self) -> int:
        return len(self.head)


def count_property_rules(
    relations: Relations,
    properties: Properties,
    heads: Ints,
    *,
    min_support: int,
    min_confidence: float,
    pessimism: float,
) -> PropertyRules:
    """Count the rules from all properties to the properties `heads [H]`, exactly.

    A rule is dropped if its body is its head, or if a more general rule is at least as confident: r(X,A) is
    more general than r(X,d). X is not c, and in h(X,c) ← h(X,A), A is not c either.
    """
    own, relation = properties.holders, properties.relation
    is_general = properties.value == ANY
    usable = relations.representative[relation] == relation
    usable[properties.value == SELF] = True
    size = np.asarray(own.sum(axis=0), dtype=np.int64).ravel()
    shared = (own[:, heads].T.tocsr() @ own).tocoo()
    head, body, support = heads[shared.row], shared.col.astype(np.int64), shared.data.astype(np.int64)
    body_size = size[body]
    general = is_general[body] & (relation[body] == relation[head]) & (properties.value[head] >= 0)
    if general.any():
        lone = _lone(relations, properties, head[general])
        support[general] -= lone
        body_size[general] -= lone
    keep = usable[body] & (body != head) & (support >= min_support)
    head, body, support, body_size = head[keep], body[keep], support[keep], body_size[keep]
    value = properties.value[head]
    if len(head):
        of_constant = np.asarray(own[np.maximum(value, 0), body]).ravel()
        body_size = body_size - np.where(value >= 0, of_constant, 0)
    confidence = support / (body_size + pessimism)
    keep = (confidence >= min_confidence) & ~_is_redundant(properties, head, body, confidence)
    return PropertyRules(head[keep], body[keep], support[keep], body_size[keep])


def _lone(relations: Relations, properties: Properties, heads: Ints) -> Ints:
    """Return how many entities have the property r(X,c) and no other r(X,A), `[n]`."""
    found = np.zeros(len(heads), dtype=np.int64)
    for relation in np.unique(properties.relation[heads]):
        matrix = relations.matrices[relation]
        single = np.flatnonzero(np.diff(matrix.indptr) == 1)
        count = np.bincount(matrix[single].indices, minlength=relations.num_entities)
        rows = properties.relation[heads] == relation
        found[rows] = count[properties.value[heads[rows]]]
    return found


def _is_redundant(
    properties: Properties, head: Ints, body: Ints, confidence: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which rules have a more general one with at least their confidence, `[n]`."""
    base = int(properties.relation.max(initial=0)) + 1
    key = head * base + properties.relation[body]
    general = properties.value[body] == ANY
    order = np.argsort(key[general])
    keys, values = key[general][order], confidence[general][order]
    if not len(keys):
        return np.zeros(len(head), dtype=bool)
    place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
    redundant: NDArray[np.bool_] = ~general & (keys[place] == key) & (values[place] >= confidence)
    return redundant & (properties.value[body] >= 0)
