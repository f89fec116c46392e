"""Facts as sparse matrices, one per relation and direction, and the pairs that chains of them connect."""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Ints = NDArray[np.int64]
Body = tuple[int, ...]
"""Directed relations of a chain from X to Y: p for predicate p + 1, and P + p for its inverse."""


class Relations:
    """The facts of a knowledge graph as adjacency matrices `[E, E]` of 2P directed relations.

    The matrices hold no loops p(a,a), which are kept apart, so neighbouring variables of a chain are always
    different entities.

    Args:
        facts: `[n, 3]` rows (predicate, head, tail) of ids from 1.
        num_predicates: P.
        num_entities: E.
    """

    def __init__(self, facts: Ints, *, num_predicates: int, num_entities: int) -> None:
        self.num_predicates, self.num_entities = num_predicates, num_entities
        predicate, head, tail = np.unique(facts, axis=0).astype(np.int64).T - 1
        loops = head == tail
        self.loops = np.stack([predicate[loops], head[loops]])
        predicate, head, tail = predicate[~loops], head[~loops], tail[~loops]
        self.relation = np.concatenate([predicate, predicate + num_predicates])
        self.source, self.target = np.concatenate([head, tail]), np.concatenate([tail, head])
        shape = (num_entities, num_entities)
        self.matrices = [
            _ones(self.source[chosen], self.target[chosen], shape)
            for chosen in (self.relation == number for number in range(2 * num_predicates))
        ]
        self.round_trips = cache(self._round_trips)

    def inverse(self, relation: int) -> int:
        """Return the same predicate in the other direction."""
        return (relation + self.num_predicates) % (2 * self.num_predicates)

    def reverse(self, body: Body) -> Body:
        """Return the chain from Y to X."""
        return tuple(self.inverse(relation) for relation in reversed(body))

    @cached_property
    def representative(self) -> Ints:
        """For each relation the first one with the same pairs, `[2P]`: a symmetric one is its own inverse."""
        first: dict[bytes, int] = {}
        keys = (matrix.indptr.tobytes() + matrix.indices.tobytes() for matrix in self.matrices)
        return np.array([first.setdefault(key, number) for number, key in enumerate(keys)], dtype=np.int64)

    @cached_property
    def pairs(self) -> Any:
        """The numbers of all connected pairs from 1, `[E, E]`."""
        key = np.unique(self.source * self.num_entities + self.target)
        index = (key // self.num_entities, key % self.num_entities)
        shape = (self.num_entities, self.num_entities)
        return sparse.csr_matrix((np.arange(1, len(key) + 1, dtype=np.int32), index), shape)

    @cached_property
    def of_pair(self) -> Any:
        """The relations of each pair, `[pairs, 2P]`."""
        number = np.asarray(self.pairs[self.source, self.target]).ravel() - 1
        return _ones(number, self.relation, (self.pairs.nnz, 2 * self.num_predicates))

    def connected(self, body: Body, rows: Ints | None = None, *, first: Any = None) -> Any:
        """Return the pairs (x, y) that a chain of up to three relations connects, `[rows, E]` of ones.

        All entities of a path differ, x and y included (object identity, as in AnyBURL). So no path uses the
        atom of a head with the arguments (x, y), and a rule cannot support itself.

        Args:
            body: relations from x to y.
            rows: `[R]` the x to start at; all entities if not given.
            first: these rows of the first relation, if already taken.
        """
        chosen = [self.matrices[relation] for relation in body]
        starts = np.arange(self.num_entities) if rows is None else rows
        if first is None:
            first = chosen[0] if rows is None else chosen[0][rows]
        if len(body) == 1:
            return first
        reached = _without(first @ chosen[1], starts)
        if len(body) == 3:
            returning = self.round_trips(body[1], body[2])
            reached = reached @ chosen[2]
            if returning.any():
                back, last = self.matrices[self.inverse(body[1])], chosen[2]
                if rows is not None:
                    back, last = back[rows], last[rows]
                over = first.multiply(returning).tocsr() - first.multiply(back).multiply(last).tocsr()
                reached = reached - over
            reached = _without(reached, starts)
        reached.data = (reached.data > 0).astype(np.int32)
        reached.eliminate_zeros()
        return reached

    def path_counts(self, body: Body) -> NDArray[np.float64]:
        """Return the number of paths from each entity along a chain, repeated entities included, `[E]`."""
        count = np.ones(self.num_entities)
        for relation in reversed(body):
            count = self.matrices[relation] @ count
        return count

    def _round_trips(self, there: int, back: int) -> NDArray[np.int32]:
        """Return the number of paths from each entity to itself along two relations, `[E]`."""
        both = self.matrices[there].multiply(self.matrices[self.inverse(back)])
        return np.asarray(both.sum(axis=1), dtype=np.int32).ravel()


def _ones(row: Ints, column: Ints, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix with ones at these places, each given once."""
    matrix = sparse.csr_matrix((np.ones(len(row), dtype=np.int32), (row, column)), shape)
    matrix.sort_indices()
    return matrix


def _without(matrix: Any, columns: Ints) -> Any:
    """Return the matrix `[R, E]` without the entry of one column of each row."""
    matrix = matrix.tocsr()
    matrix.data[matrix.indices == np.repeat(columns, np.diff(matrix.indptr))] = 0
    matrix.eliminate_zeros()
    return matrix
