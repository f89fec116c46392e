"""Scheduling rules for batches of worlds: heaviest sets, greedy sets, local maxima, random sets.

Every rule breaks ties by an order of the nodes that the caller gives. Of equally good sets, one without the
last node of the order wins, then one without the last but one, and so on. Only nodes that have something to
send count.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edgewise.graphs.heaviest import KEY_BITS, heaviest_set
from edgewise.graphs.independent_sets import MAX_SETS, maximal_sets
from edgewise.systems.queueing.graphs import ConflictGraphs


class SetScheduler:
    """Exact maximisation over independent sets, each world on its own graph.

    The maximal sets of every graph are enumerated once; each slot is then a product of weights and sets. A
    graph with too many sets is solved world by world instead.

    Args:
        graphs: conflict graphs.
        limit: maximum number of sets to enumerate.
    """

    def __init__(self, graphs: ConflictGraphs, *, limit: int = MAX_SETS) -> None:
        self.graphs = graphs
        self.sets: list[Tensor | None] = []
        for graph in graphs.graphs:
            found = maximal_sets(graph.adjacency, limit=limit)
            padding = (0, graphs.num_nodes - graph.num_nodes)
            self.sets.append(None if found is None else torch.nn.functional.pad(found, padding).float())

    def best(self, graph: Tensor, scores: Sequence[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
        """Return the maximal set that is best by the first score, then the second, and so on, then by order.

        Args:
            graph: `[B]` int64, index of each world's graph.
            scores: non-negative tensors `[B, N]`; a set's score is the sum over its members.
            order: `[B, N]` int64, rank of each node for breaking ties.
            counted: `[B, N]` bool, nodes that count when breaking ties.

        Returns:
            `[B, N]` bool.
        """
        chosen = torch.zeros_like(counted)
        for number, sets in enumerate(self.sets):
            rows = (graph == number).nonzero().squeeze(-1)
            if not len(rows):
                continue
            mine = [score[rows] for score in scores]
            if sets is None:
                chosen[rows] = self._solve(number, mine, order[rows], counted[rows])
            else:
                chosen[rows] = best_listed(
                    sets.to(graph.device), mine, order=order[rows], counted=counted[rows]
                )
        return chosen

    def random(self, graph: Tensor, generator: torch.Generator) -> Tensor:
        """Sample one maximal set for each world uniformly, `[B, N]` bool."""
        draw = torch.rand(graph.shape, generator=generator, device=graph.device)
        chosen = torch.zeros(*graph.shape, self.graphs.num_nodes, dtype=torch.bool, device=graph.device)
        for number, sets in enumerate(self.sets):
            if sets is None:
                raise ValueError(
                    f"{self.graphs.names[number]} has too many maximal sets to draw from: use random-greedy"
                )
            rows = graph == number
            chosen[rows] = sets.to(graph.device)[(draw[rows] * len(sets)).long()].bool()
        return chosen

    def _solve(self, number: int, scores: list[Tensor], order: Tensor, counted: Tensor) -> Tensor:
        """Solve one world after another with an exact solver, `[R, N]` bool."""
        graph = self.graphs.graphs[number]
        size, padding = graph.num_nodes, (0, self.graphs.num_nodes - graph.num_nodes)
        columns = (part.cpu()[:, :size] for part in (order, counted, *scores))
        found = [
            heaviest_set(graph, weights, order=rank, counted=count)
            for rank, count, *weights in zip(*columns, strict=True)
        ]
        return torch.nn.functional.pad(torch.stack(found), padding).to(counted.device)


def best_listed(sets: Tensor, scores: Sequence[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
    """Return the best of enumerated sets `[S, N]` float; other arguments as in `SetScheduler.best`."""
    alive = torch.ones(len(order), len(sets), dtype=torch.bool, device=sets.device)
    for score in scores:
        alive = _keep_best(alive, score @ sets.T)
    for first in reversed(range(0, order.shape[-1], KEY_BITS)):
        within = counted & (order >= first) & (order < first + KEY_BITS)
        key = torch.where(within, 2.0 ** (order - first), 0.0)
        alive = _keep_best(alive, -(key @ sets.T))
    return sets[alive.int().argmax(-1)].bool()


def _keep_best(alive: Tensor, value: Tensor) -> Tensor:
    """Keep the candidates with the highest value, `[R, S]` bool."""
    value = value.masked_fill(~alive, -torch.inf)
    return value == value.amax(-1, keepdim=True)


def local_greedy(weight: Tensor, adjacency: Tensor, *, open_nodes: Tensor, order: Tensor) -> Tensor:
    """Build a maximal set in rounds: nodes that outweigh all remaining neighbours join and remove them.

    Zhao, Verma, Rao, Swami and Segarra, https://arxiv.org/abs/2011.09430.

    Args:
        weight: `[B, N]`.
        adjacency: `[B, N, N]` bool.
        open_nodes: `[B, N]` bool, the candidate nodes.
        order: `[B, N]` int64; of neighbours with equal weight the one with the lower rank joins.

    Returns:
        `[B, N]` bool.
    """
    beaten_by = _beaten_by(weight, adjacency, order)
    chosen = torch.zeros_like(open_nodes)
    while open_nodes.any():
        joins = open_nodes & ~(beaten_by & open_nodes.unsqueeze(-2)).any(-1)
        chosen = chosen | joins
        open_nodes = open_nodes & ~joins & ~(adjacency & joins.unsqueeze(-2)).any(-1)
    return chosen


def local_maxima(weight: Tensor, adjacency: Tensor, *, open_nodes: Tensor, order: Tensor) -> Tensor:
    """Return the first round of `local_greedy`, `[B, N]` bool."""
    rivals = _beaten_by(weight, adjacency, order) & open_nodes.unsqueeze(-2)
    return open_nodes & ~rivals.any(-1)


def _beaten_by(weight: Tensor, adjacency: Tensor, order: Tensor) -> Tensor:
    """Return at (i, j) whether neighbour j takes precedence over i, `[B, N, N]` bool."""
    heavier = weight.unsqueeze(-2) > weight.unsqueeze(-1)
    equal = weight.unsqueeze(-2) == weight.unsqueeze(-1)
    return adjacency & (heavier | equal & (order.unsqueeze(-2) < order.unsqueeze(-1)))
