"""Scheduling rules for batches of worlds: heaviest sets, greedy sets, local maxima, random sets.

Every rule breaks ties by an order of the nodes that the caller gives. Of equally good sets, one without the
last node of the order wins, then one without the last but one, and so on. Only nodes that have something to
send count.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from edgewise.systems.queueing.graphs import ConflictGraphs
from edgewise.systems.queueing.models.diagram_set import SetDiagrams
from edgewise.systems.queueing.sets.diagram import IN, MAX_STATES, OUT, set_diagram
from edgewise.systems.queueing.sets.diagram_batch import DiagramBatch
from edgewise.systems.queueing.sets.heaviest import KEY_BITS, heaviest_set
from edgewise.systems.queueing.sets.listing import MAX_SETS, maximal_sets


class SetScheduler:
    """Exact maximisation over independent sets, each world on its own graph.

    The maximal sets of a graph are enumerated once if they are few; each slot is then a product of weights
    and sets. Otherwise a decision diagram is built once, and each slot is a dynamic program over its layers.
    A graph whose diagram is too wide is solved world by world.

    Args:
        graphs: conflict graphs.
        limit: maximum number of sets to enumerate.
        max_states: maximum number of states in a layer of a diagram.
    """

    def __init__(
        self, graphs: ConflictGraphs, *, limit: int = MAX_SETS, max_states: int = MAX_STATES
    ) -> None:
        self.graphs, self.max_states = graphs, max_states
        self.maximal: dict[int, SetDiagrams] = {}
        self.sets: list[Tensor | DiagramBatch | None] = []
        for number, graph in enumerate(graphs.graphs):
            found = maximal_sets(graph.adjacency, limit=limit)
            if found is not None:
                padding = (0, graphs.num_nodes - graph.num_nodes)
                self.sets.append(torch.nn.functional.pad(found, padding).float())
                continue
            diagram = set_diagram(graphs.adjacency[number], maximal=False, limit=max_states)
            self.sets.append(None if diagram is None else DiagramBatch([diagram]))

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
            ties = {"order": order[rows], "counted": counted[rows]}
            if sets is None:
                chosen[rows] = self._solve(number, mine, **ties)
            elif isinstance(sets, DiagramBatch):
                chosen[rows] = best_path(sets.to(graph.device), mine, **ties)
            else:
                chosen[rows] = best_listed(sets.to(graph.device), mine, **ties)
        return chosen

    def random(self, graph: Tensor, generator: torch.Generator) -> Tensor:
        """Sample one maximal set for each world uniformly, `[B, N]` bool."""
        draw = torch.rand(graph.shape, generator=generator, device=graph.device)
        chosen = torch.zeros(*graph.shape, self.graphs.num_nodes, dtype=torch.bool, device=graph.device)
        for number, sets in enumerate(self.sets):
            rows = graph == number
            if isinstance(sets, Tensor):
                chosen[rows] = sets.to(graph.device)[(draw[rows] * len(sets)).long()].bool()
            elif rows.any():
                chosen[rows] = self._random_path(number, int(rows.sum()), generator)
        return chosen

    def _random_path(self, number: int, count: int, generator: torch.Generator) -> Tensor:
        """Sample maximal sets of a graph with too many to list uniformly, `[count, N]` bool."""
        if number not in self.maximal:
            diagram = set_diagram(self.graphs.adjacency[number], limit=self.max_states)
            if diagram is None:
                raise ValueError(
                    f"{self.graphs.names[number]} has too many maximal sets to draw from: use random-greedy"
                )
            tables = SetDiagrams(self.graphs.adjacency[[number]], [diagram])
            self.maximal[number] = tables.to(generator.device)
        nodes = self.graphs.node_mask[number].to(generator.device).expand(count, -1)
        equal, graph = (
            torch.zeros_like(nodes, dtype=torch.float32),
            torch.zeros_like(nodes[:, 0]).long(),
        )
        return self.maximal[number].distribution(equal, nodes, graph=graph).sample(generator=generator)

    def _solve(self, number: int, scores: list[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
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
    for key in _tie_keys(order, counted):
        alive = _keep_best(alive, key.to(sets.dtype) @ sets.T)
    return sets[alive.int().argmax(-1)].bool()


def best_path(diagrams: DiagramBatch, scores: Sequence[Tensor], *, order: Tensor, counted: Tensor) -> Tensor:
    """Return the best set of a diagram of independent sets; other arguments as in `SetScheduler.best`.

    Every state keeps the best scores of the sets that go on from it, which are compared lexicographically.
    """
    one_graph = torch.zeros(len(order), dtype=torch.int64, device=order.device)
    every = torch.stack([*(score.double() for score in scores), *_tie_keys(order, counted)], 1)
    weights = every[..., diagrams.order[0]]
    values = torch.stack((torch.zeros_like(weights[..., 0]), torch.full_like(weights[..., 0], -torch.inf)))
    takes: list[Tensor] = []
    for number in reversed(range(diagrams.depth)):
        after = diagrams.after(values.flatten(1), number, one_graph).unflatten(-1, weights.shape[:2])
        out, taken = after[OUT], after[IN] + weights[..., number]
        takes.insert(0, _exceeds(taken, out))
        found = torch.where(takes[0].unsqueeze(-1), taken, out)
        values = torch.cat((found, torch.full_like(found[:1], -torch.inf)))

    def take(number: int, state: Tensor, child: Tensor) -> Tensor:  # noqa: ARG001
        return takes[number].gather(0, state.unsqueeze(0)).squeeze(0)

    return diagrams.walk(torch.ones_like(counted.T), one_graph, take)


def _exceeds(one: Tensor, other: Tensor) -> Tensor:
    """Return whether scores `[..., K]` are lexicographically larger than others, `[...]` bool."""
    larger, equal = one > other, one == other
    before = torch.cat((torch.ones_like(equal[..., :1]), equal[..., :-1].cumprod(-1).bool()), -1)
    return (before & larger).any(-1)


def _tie_keys(order: Tensor, counted: Tensor) -> list[Tensor]:
    """Return scores `[R, N]` float64 that are highest for the set that the order prefers, in turn."""
    keys = []
    for first in reversed(range(0, order.shape[-1], KEY_BITS)):
        within = counted & (order >= first) & (order < first + KEY_BITS)
        keys.append(-torch.where(within, 2.0 ** (order - first).double(), 0.0))
    return keys


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
