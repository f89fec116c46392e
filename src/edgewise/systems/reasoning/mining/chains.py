"""Confidence and support of chain rules: one sparse product per body counts all heads at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgewise.systems.reasoning.mining.relations import Body, Ints, Relations


@dataclass(frozen=True)
class ChainRule:
    """A closed rule h(X,Y) ← b1(X,A), b2(A,B), b3(B,Y), with up to three atoms in its body.

    Attributes:
        head: predicate of the head, from 0.
        body: directed relations from X to Y.
        support: pairs that the body connects and the head holds for.
        body_size: pairs that the body connects.
        sampled: whether both were counted from a sample of the X.
        digest: hash of the connected pairs, to find rules that conclude the same; 0 if sampled.
    """

    head: int
    body: Body
    support: int
    body_size: int
    sampled: bool = False
    digest: int = 0


def single_atom_rules(relations: Relations, *, min_support: int) -> list[ChainRule]:
    """Count all rules h(X,Y) ← b(X,Y) and h(X,Y) ← b(Y,X), exactly."""
    shared = (relations.of_pair.T @ relations.of_pair)[: relations.num_predicates].tocoo()
    size = [matrix.nnz for matrix in relations.matrices]
    digest = [_digests(matrix, np.arange(relations.num_entities))[0] for matrix in relations.matrices]
    return [
        ChainRule(head, (body,), support, size[body], digest=digest[body])
        for head, body, support in zip(
            shared.row.tolist(), shared.col.tolist(), shared.data.tolist(), strict=True
        )
        if head != body and support >= min_support
    ]


def count_body(
    relations: Relations, body: Body, *, min_support: int, max_paths: int, seed: int
) -> list[ChainRule]:
    """Count the rules of all heads with one body of two or three atoms.

    If there are more paths than `max_paths`, as many random X are taken as have that many together.
    """
    paths = relations.path_counts(body)
    rows, sampled = np.flatnonzero(paths), False
    if paths.sum() > max_paths:
        rows = np.random.default_rng([seed, *body]).permutation(rows)
        count = int(np.searchsorted(np.cumsum(paths[rows]), max_paths)) or 1
        rows, sampled = np.sort(rows[:count]), count < len(rows)
    if not len(rows):
        return []
    connected = relations.connected(body, rows)
    held = connected.multiply(relations.pairs[rows])
    support = np.asarray(relations.of_pair[held.data - 1].sum(axis=0)).ravel()
    digests = (0, 0) if sampled else _digests(connected, rows)
    reverse = relations.reverse(body)
    palindrome = tuple(relations.representative[list(reverse)]) == body
    found = []
    for relation in np.flatnonzero(support >= min_support).tolist():
        inverse = relation >= relations.num_predicates
        if inverse and palindrome:
            continue
        found.append(
            ChainRule(
                relation % relations.num_predicates,
                reverse if inverse else body,
                int(support[relation]),
                connected.nnz,
                sampled,
                digests[inverse],
            )
        )
    return found


def _digests(connected: Any, rows: Ints) -> tuple[int, int]:
    """Return hashes of the pairs (x, y) of a sparse matrix `[rows, E]`, and of the pairs (y, x)."""
    x = np.repeat(rows, np.diff(connected.indptr)).astype(np.uint64)
    y = connected.indices.astype(np.uint64)
    return int(_mix(x, y).sum()), int(_mix(y, x).sum())


def _mix(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash pairs, by the finaliser of SplitMix64."""
    value = (first << np.uint64(32)) + second + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
