"""Decision diagrams of several graphs as padded tables, for batches of worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from edgewise.systems.queueing.sets.diagram import BARRED, IN, OUT, SetDiagram

TakeNode = Callable[[int, Tensor, Tensor], Tensor]
"""Layer, states and their next states `[..., 3]` to whether the node is taken, bool."""


class DiagramBatch(nn.Module):
    """Diagrams of the independent sets of G graphs with N nodes each.

    Values of states are `[S + 1, B]` for S states and B worlds; the last row is that of no state.

    Args:
        diagrams: one for each graph.

    Attributes:
        order: `[G, N]` int64, the node that each layer decides.
    """

    order: Tensor

    def __init__(self, diagrams: Sequence[SetDiagram]) -> None:
        super().__init__()
        self.depth = len(diagrams[0].order)
        self.register_buffer("order", torch.tensor([each.order for each in diagrams]), persistent=False)
        for number in range(self.depth):
            self.register_buffer(f"layer{number}", _padded(diagrams, number), persistent=False)

    def layer(self, number: int) -> Tensor:
        """Return the states of the next layer after each branch of each state, `[G, S, 3]` int64."""
        return self.get_buffer(f"layer{number}")

    def in_order(self, values: Tensor, graph: Tensor) -> Tensor:
        """Return values of nodes `[B, N]` in the order of the layers, `[N, B]`; graph `[B]` int64."""
        return values.gather(-1, self.order[graph]).T

    def after(self, values: Tensor, number: int, graph: Tensor) -> Tensor:
        """Return the values of the states after each branch.

        Args:
            values: `[S' + 1, B]` of the states of layer `number + 1`.
            number: of a layer.
            graph: `[B]` int64, the graph of each world.

        Returns:
            `[3, S, B]`, for `OUT`, `IN` and `BARRED`.
        """
        table = self.layer(number)
        if len(table) == 1:
            found = values.index_select(0, table[0].T.flatten())
        else:
            found = values.gather(0, table[graph].transpose(-1, -2).flatten(1).T)
        return found.unflatten(0, (3, -1))

    def walk(self, allowed: Tensor, graph: Tensor, take: TakeNode) -> Tensor:
        """Follow one path per world from the first layer to the end.

        Args:
            allowed: `[N, *K, B]` bool, in the order of the layers.
            graph: `[B]` int64.
            take: decides about allowed nodes, from states `[*K, B]`.

        Returns:
            `[*K, B, N]` bool, the nodes that are taken.
        """
        state = torch.zeros_like(allowed[0], dtype=torch.int64)
        taken = []
        for number in range(self.depth):
            child = self.layer(number)[graph.expand_as(state), state]
            takes = allowed[number] & take(number, state, child)
            skipped = torch.where(allowed[number], child[..., OUT], child[..., BARRED])
            state = torch.where(takes, child[..., IN], skipped)
            taken.append(takes)
        places = self.order[graph].expand(*state.shape, self.depth)
        return torch.zeros_like(places, dtype=torch.bool).scatter(-1, places, torch.stack(taken, -1))


def _padded(diagrams: Sequence[SetDiagram], number: int) -> Tensor:
    """Return the tables of one layer, `[G, S, 3]`; padding leads to no state, the last row of all values."""
    layers = [torch.from_numpy(each.layers[number]) for each in diagrams]
    nexts = [len(each.layers[number + 1]) if number + 1 < len(each.layers) else 1 for each in diagrams]
    table = torch.full((len(layers), max(map(len, layers)), 3), max(nexts))
    for row, layer, none in zip(table, layers, nexts, strict=True):
        row[: len(layer)] = torch.where(layer == none, max(nexts), layer)
    return table
