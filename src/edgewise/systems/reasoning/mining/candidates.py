"""Bodies worth counting: chains that connect sampled training pairs, found from both ends at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgewise.systems.reasoning.mining.relations import Body, Ints, Relations

AT_ONCE = 4096
"""Pairs that are connected in one batch."""
MOST_PATHS = 3_000_000
"""Paths that are counted per batch; the rest is sampled."""


def chain_bodies(
    relations: Relations, *, length: int, pairs: int, branches: int, generator: np.random.Generator
) -> dict[Body, int]:
    """Count the chains that connect sampled pairs of training atoms.

    Half of the pairs are sampled uniformly, half with equal shares of all relations. A chain and its reverse
    are counted together, and relations with equal pairs are one.

    Args:
        relations: the facts.
        length: 2 or 3 atoms.
        pairs: number of pairs; all if there are fewer.
        branches: edges of x that are sampled per pair for the first atom of three.
        generator: source of randomness.

    Returns:
        Number of paths by chain.
    """
    x, y = _sample_pairs(relations, pairs, generator)
    graph = _Edges(relations)
    counts: dict[Body, int] = {}
    for start in range(0, len(x), AT_ONCE):
        left, right = x[start : start + AT_ONCE], y[start : start + AT_ONCE]
        prefix = np.zeros((len(left), 0), dtype=np.int64)
        if length == 3:
            origin, left, prefix = _branch(graph, left, right, branches, generator)
            right, avoided = right[origin], x[start : start + AT_ONCE][origin]
            keep = left != right
            left, right, prefix, avoided = left[keep], right[keep], prefix[keep], avoided[keep]
        else:
            avoided = left
        found = _two_steps(graph, left, right, avoided, prefix, generator)
        _add(counts, relations, found)
    return counts


class _Edges:
    """Directed relations by pair of entities and by entity."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self.neighbours = relations.pairs.copy()
        self.neighbours.data = np.ones_like(self.neighbours.data)
        order = np.argsort(relations.source, kind="stable")
        self.relation, self.target = relations.relation[order], relations.target[order]
        self.degree = np.bincount(relations.source, minlength=relations.num_entities)
        self.first = np.cumsum(self.degree) - self.degree

    def of_pairs(self, x: Ints, y: Ints) -> Any:
        """Return the relations of connected pairs: `indptr` and `indices` of a sparse matrix."""
        number = np.asarray(self.relations.pairs[x, y]).ravel() - 1
        return self.relations.of_pair[number]


def _sample_pairs(relations: Relations, count: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    total = len(relations.source) // 2
    if count >= total:
        chosen = np.arange(total)
    else:
        share = np.bincount(relations.relation[:total], minlength=relations.num_predicates)
        weight = 0.5 / total + 0.5 / (share[relations.relation[:total]] * np.count_nonzero(share))
        chosen = generator.choice(total, size=count, replace=False, p=weight / weight.sum())
    return relations.source[chosen], relations.target[chosen]


def _branch(
    graph: _Edges, x: Ints, y: Ints, branches: int, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Sample edges of x: the number of the pair, the entity reached, and the relation `[n, 1]`."""
    del y
    few = np.minimum(graph.degree[x], branches)
    origin = np.repeat(np.arange(len(x)), few)
    number = np.arange(len(origin)) - np.repeat(np.cumsum(few) - few, few)
    degree = graph.degree[x][origin]
    # Edges are spread evenly from a random first one, so that none is taken twice.
    offset = np.repeat(generator.random(len(x)), few)
    edge = ((number + offset) / few[origin] * degree).astype(np.int64) % degree
    place = graph.first[x][origin] + edge
    return origin, graph.target[place], graph.relation[place][:, None]


def _two_steps(
    graph: _Edges, left: Ints, right: Ints, avoided: Ints, prefix: Ints, generator: np.random.Generator
) -> Ints:
    """Return the relations of all paths left – middle – right after their prefixes, `[n, length]`."""
    common = graph.neighbours[left].multiply(graph.neighbours[right]).tocoo()
    origin, middle = common.row.astype(np.int64), common.col.astype(np.int64)
    keep = middle != avoided[origin]
    origin, middle = origin[keep], middle[keep]
    if not len(origin):
        return np.zeros((0, prefix.shape[1] + 2), dtype=np.int64)
    if len(origin) > MOST_PATHS:
        some = np.sort(generator.choice(len(origin), size=MOST_PATHS, replace=False))
        origin, middle = origin[some], middle[some]
    one, two = graph.of_pairs(left[origin], middle), graph.of_pairs(middle, right[origin])
    first, second = np.diff(one.indptr), np.diff(two.indptr)
    both = first * second
    path = np.repeat(np.arange(len(both)), both)
    number = np.arange(len(path)) - np.repeat(np.cumsum(both) - both, both)
    b1 = one.indices[one.indptr[path] + number // second[path]]
    b2 = two.indices[two.indptr[path] + number % second[path]]
    return np.column_stack([prefix[origin[path]], b1, b2])


def _add(counts: dict[Body, int], relations: Relations, found: Ints) -> None:
    """Add chains `[n, length]` to the counts, each in its canonical direction."""
    if not len(found):
        return
    same, width = relations.representative, 2 * relations.num_predicates
    forward = same[found]
    backward = same[(found[:, ::-1] + relations.num_predicates) % width]
    power = width ** np.arange(found.shape[1] - 1, -1, -1, dtype=np.int64)
    key, count = np.unique(np.minimum(forward @ power, backward @ power), return_counts=True)
    for one, times in zip(key.tolist(), count.tolist(), strict=True):
        body = tuple(one // int(p) % width for p in power)
        counts[body] = counts.get(body, 0) + times
