"""Scores of candidates from the rules that conclude them: greatest weight, noisy-or, clusters of rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from edgewise.systems.reasoning.mining.relations import Ints

Floats = NDArray[np.float64]
CERTAIN = 1 - 1e-9
"""Greatest weight in a noisy-or, which would be infinite at 1."""


def greatest(concluded: Any, weight: Floats) -> Floats:
    """Return the greatest weight of each row `[N]`; 0 where no rule concludes it."""
    score = np.zeros(concluded.shape[0])
    rows = np.flatnonzero(np.diff(concluded.indptr))
    score[rows] = weight[concluded.indices[concluded.indptr[rows]]]
    return score


def greatest_then_next(concluded: Any, weight: Floats, *, questions: int) -> Floats:
    """Rank the rows of each question by their greatest weight, ties by the next ones and so on.

    Args:
        concluded: sparse `[N, n]`, rules in each row ascending, that is by falling weight.
        weight: `[n]`, falling.
        questions: N is `questions` blocks of equal size.

    Returns:
        `[N]` integers that order the rows of one question; 0 where no rule concludes it.
    """
    score = np.zeros(concluded.shape[0])
    count = np.diff(concluded.indptr)
    rows = np.flatnonzero(count)
    if not len(rows):
        return score
    level = np.unique(-weight, return_inverse=True)[1]
    values = level[concluded.indices]
    question = rows // (concluded.shape[0] // questions)
    # Rows with equal lists of weights share one label: only their representatives are compared.
    words = np.random.default_rng(0).integers(0, 2**63, size=int(level.max()) + 1, dtype=np.uint64)
    digest = np.add.reduceat(words[values], concluded.indptr[rows])
    digest += question.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    _, chosen, member = np.unique(digest, return_index=True, return_inverse=True)
    label = _refine(values, concluded.indptr[rows[chosen]], count[rows[chosen]], question[chosen])
    score[rows] = label.max() + 1 - label[member]
    return score


def _refine(values: Ints, first: Ints, count: Ints, group: Ints) -> Ints:
    """Number lists of ascending values in lexicographic order within their groups, longer ones first.

    Args:
        values: concatenated lists.
        first: `[n]` the start of each list.
        count: `[n]` their lengths.
        group: `[n]` lists are compared within a group; no two lists of a group are equal.
    """
    beyond = int(values.max()) + 1
    label = np.unique(group, return_inverse=True)[1].astype(np.int64)
    size = np.bincount(label)
    # Labels leave room: the members of a group of k lists get distinct labels from its first one on.
    label = (np.cumsum(size) - size)[label]
    active, position = np.flatnonzero(np.bincount(label, minlength=len(label))[label] > 1), 0
    while len(active):
        has = count[active] > position
        value = np.where(has, values[np.where(has, first[active] + position, 0)], beyond)
        order = np.lexsort((value, label[active]))
        active, value = active[order], value[order]
        own = label[active]
        place = np.arange(len(active))
        starts_group = np.r_[True, own[1:] != own[:-1]]
        starts_value = starts_group | np.r_[True, value[1:] != value[:-1]]
        start = np.maximum.accumulate(np.where(starts_group, place, 0))
        tied = np.maximum.accumulate(np.where(starts_value, place, 0))
        label[active] = own + (tied - start)
        alone = starts_value & np.r_[starts_value[1:], True]
        active, position = active[~alone], position + 1
    return label


def noisy_or(concluded: Any, weight: Floats) -> Floats:
    """Return −log of the probability that every rule of a row is wrong, `[N]`; 0 where there is none."""
    strength = -np.log1p(-np.minimum(weight, CERTAIN))
    return np.asarray(concluded.astype(np.float64) @ strength)


def clustered_noisy_or(concluded: Any, weight: Floats, cluster: Ints) -> Floats:
    """Return the noisy-or over clusters of rules, each by its greatest weight (SAFRAN), `[N]`.

    Args:
        concluded: sparse `[N, n]`, rules in each row by falling weight.
        weight: `[n]`, falling.
        cluster: `[n]` the cluster of each rule.
    """
    row = np.repeat(np.arange(concluded.shape[0]), np.diff(concluded.indptr))
    key = row * (int(cluster.max(initial=0)) + 1) + cluster[concluded.indices]
    best = np.unique(key, return_index=True)[1]
    strength = -np.log1p(-np.minimum(weight, CERTAIN))[concluded.indices[best]]
    return np.bincount(row[best], weights=strength, minlength=concluded.shape[0]).astype(np.float64)


def similar_rules(concluded: Any) -> Any:
    """Return the Jaccard similarity of the rules' conclusions, sparse `[n, n]`, above the diagonal."""
    table = concluded.astype(np.int32)
    size = np.asarray(table.sum(axis=0)).ravel()
    shared = sparse.triu(table.T @ table, k=1).tocoo()
    value = shared.data / (size[shared.row] + size[shared.col] - shared.data)
    return sparse.coo_matrix((value, (shared.row, shared.col)), shared.shape)


def clusters(similarity: Any, threshold: float) -> Ints:
    """Return the connected components of rules whose similarity is at least a threshold, `[n]`."""
    kept = similarity.data >= threshold
    links = (similarity.data[kept], (similarity.row[kept], similarity.col[kept]))
    found: Ints = connected_components(sparse.coo_matrix(links, similarity.shape), directed=False)[1]
    return found.astype(np.int64)
