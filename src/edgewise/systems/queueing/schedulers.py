"""Schedules of whole batches of worlds by rule: heaviest sets, greedy sets, local maxima, random sets.

Ties are part of a policy. Every rule here breaks them by an order of the nodes that the caller gives: of
equally good sets the one wins that does without the last node of the order if any does, then without the
last but one, and so on. Only nodes that have something to send count, since the others change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edgewise.graphs.heaviest import KEY_BITS, heaviest_set
from edgewise.graphs.independent_sets import MAX_SETS, maximal_sets
from edgewise.systems.queueing.graphs import ConflictGraphs


class SetScheduler:
    """Exact maximisation over independent sets, for each world on its own graph.

    The maximal sets of every graph are listed once; a slot is then a product of weights and sets. A graph
    with too many is solved world by world instead.

    Args:
        graphs: the conflict graphs.
        limit: how many maximal sets a graph may have to be listed.
    """

    def __init__(self, graphs: ConflictGraphs, *, limit: int = MAX_SETS) -> None:
        self.graphs = graphs
        self.sets: list[Tensor | None] = []
        for graph in graphs.graphs:
            found = maximal_sets(graph.adjacency, limit=limit)
            padding = (0, graphs.num_nodes - graph.num_nodes)
            self.sets.append(None if found is None else torch.nn.functional.pad(found, padding).float())

    def best(self, graph: Tensor, scores: Sequence[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
        """The maximal set that is best by the first score, then the second, and so on, then first in order.

        Args:
            graph: `[B]` int64, each world's graph.
            scores: tensors `[B, N]`, numbers from zero; a set scores the sum of its members.
            order: `[B, N]` int64, the rank of each node where sets are equally good.
            counted: `[B, N]` bool, the nodes the order looks at.

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
                chosen[rows] = self._solved(number, mine, order[rows], counted[rows])
            else:
                chosen[rows] = best_listed(
                    sets.to(graph.device), mine, order=order[rows], counted=counted[rows]
                )
        return chosen

    def random(self, graph: Tensor, generator: torch.Generator) -> Tensor:
        """One maximal set for each world, all of its graph's alike likely, `[B, N]` bool."""
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

    def _solved(self, number: int, scores: list[Tensor], order: Tensor, counted: Tensor) -> Tensor:
        """The same, one world after another by an exact solver, `[R, N]` bool."""
        graph = self.graphs.graphs[number]
        size, padding = graph.num_nodes, (0, self.graphs.num_nodes - graph.num_nodes)
        columns = (part.cpu()[:, :size] for part in (order, counted, *scores))
        found = [
            heaviest_set(graph, weights, order=rank, counted=count)
            for rank, count, *weights in zip(*columns, strict=True)
        ]
        return torch.nn.functional.pad(torch.stack(found), padding).to(counted.device)


def best_listed(sets: Tensor, scores: Sequence[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
    """The best of listed sets `[S, N]` float by scores in turn, then by order; see `SetScheduler.best`."""
    alive = torch.ones(len(order), len(sets), dtype=torch.bool, device=sets.device)
    for score in scores:
        alive = _narrow(alive, score @ sets.T)
    for first in reversed(range(0, order.shape[-1], KEY_BITS)):
        within = counted & (order >= first) & (order < first + KEY_BITS)
        key = torch.where(within, 2.0 ** (order - first), 0.0)
        alive = _narrow(alive, -(key @ sets.T))
    return sets[alive.int().argmax(-1)].bool()


def _narrow(alive: Tensor, value: Tensor) -> Tensor:
    """Those still alive whose value is highest, `[R, S]` bool."""
    value = value.masked_fill(~alive, -torch.inf)
    return value == value.amax(-1, keepdim=True)


def local_greedy(weight: Tensor, adjacency: Tensor, *, open_nodes: Tensor, order: Tensor) -> Tensor:
    """A maximal set built in rounds: whoever outweighs all remaining neighbours joins, and they drop out.

    Zhao, Verma, Rao, Swami and Segarra, https://arxiv.org/abs/2011.09430.

    Args:
        weight: `[B, N]`.
        adjacency: `[B, N, N]` bool.
        open_nodes: `[B, N]` bool, the nodes that take part.
        order: `[B, N]` int64; of equal neighbours the one with the lower rank joins.

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
    """The first round of `local_greedy` alone, `[B, N]` bool."""
    rivals = _beaten_by(weight, adjacency, order) & open_nodes.unsqueeze(-2)
    return open_nodes & ~rivals.any(-1)


def _beaten_by(weight: Tensor, adjacency: Tensor, order: Tensor) -> Tensor:
    """Whether neighbour j comes before i, `[B, N, N]` bool at (i, j)."""
    heavier = weight.unsqueeze(-2) > weight.unsqueeze(-1)
    equal = weight.unsqueeze(-2) == weight.unsqueeze(-1)
    return adjacency & (heavier | equal & (order.unsqueeze(-2) < order.unsqueeze(-1)))
