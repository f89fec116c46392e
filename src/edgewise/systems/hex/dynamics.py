"""The rules of Hex as batched tensor functions: stones, chains and winners.

A board with room for `capacity²` cells has N = capacity² + 4 nodes: the cells row by row, then the borders
top, bottom (the first player's), left and right (the second player's). A smaller board of side n uses the
first n² cells. Borders count as stones, so a player has won once its two borders are in one chain.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.scale.devices import constant

EMPTY, FIRST, SECOND = 0, 1, 2
FAR = 1000
"""Cost of a path through an opponent's stone: more than any real path costs."""
NEIGHBOURS = ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0))


def cell_neighbours(size: int, capacity: int) -> list[list[int]]:
    """Return the neighbours of each cell of a board of side `size`: cells and borders, at most six."""
    places = [(row, column) for row in range(size) for column in range(size)]
    near = [
        [_node(row + down, column + right, size, capacity) for down, right in NEIGHBOURS]
        for row, column in places
    ]
    return [sorted({node for node in nodes if node is not None}) for nodes in near]


def neighbour_table(size: int, capacity: int) -> Tensor:
    """Build the neighbour table of a board of side `size`, `[N, 6]` int64, padded with the node itself.

    Only the rows of cells are filled, since stones are never placed on borders.
    """
    near = cell_neighbours(size, capacity)
    near += [[]] * (capacity * capacity + 4 - len(near))
    return torch.tensor([nodes + [cell] * (6 - len(nodes)) for cell, nodes in enumerate(near)])


def _node(row: int, column: int, size: int, capacity: int) -> int | None:
    """Return the cell at a coordinate, or the border there, or None beyond the corners."""
    top, bottom, left, right = (capacity * capacity + border for border in range(4))
    if 0 <= column < size and not 0 <= row < size:
        return top if row < 0 else bottom
    if 0 <= row < size and not 0 <= column < size:
        return left if column < 0 else right
    return row * size + column if 0 <= row < size and 0 <= column < size else None


def empty_boards(count: int, capacity: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return stones `[B, N]` int8 with borders only, and chains `[B, N]` int16 with one node each."""
    nodes = capacity * capacity + 4
    stones = torch.zeros(count, nodes, dtype=torch.int8, device=device)
    stones[:, -4:-2], stones[:, -2:] = FIRST, SECOND
    chains = torch.arange(nodes, dtype=torch.int16, device=device).repeat(count, 1)
    return stones, chains


def place(
    stones: Tensor, chains: Tensor, *, cell: Tensor, player: Tensor, neighbours: Tensor
) -> tuple[Tensor, Tensor]:
    """Place one stone on each board and return the new stones and chains.

    All nodes of a chain carry the same number. A new stone gives its number to the chains that it joins.

    Args:
        stones: `[B, N]` int8.
        chains: `[B, N]` int16.
        cell: `[B]` int64, the cell to play.
        player: `[B]` int64, 0 or 1.
        neighbours: `[B, 6]` int64, the neighbours of `cell`.
    """
    colour = (player + 1).to(stones.dtype).unsqueeze(-1)
    at = cell.unsqueeze(-1)
    own = stones.gather(1, neighbours) == colour
    number = at.to(chains.dtype)
    joined = torch.where(own, chains.gather(1, neighbours), number)
    merged = chains == number
    for side in joined.unbind(-1):
        merged |= chains == side.unsqueeze(-1)
    return stones.scatter(1, at, colour), torch.where(merged, number, chains)


def has_won(chains: Tensor, player: Tensor) -> Tensor:
    """Return whether `player` `[B]` has connected its two borders, `[B]` bool."""
    first = chains[:, -4] == chains[:, -3]
    second = chains[:, -2] == chains[:, -1]
    return torch.where(player == 0, first, second)


def mirrored(cell: Tensor, size: Tensor) -> Tensor:
    """Mirror a cell at the long diagonal, which exchanges the roles of the two players."""
    return (cell % size) * size + cell // size


def missing_stones(stones: Tensor, neighbours: Tensor) -> Tensor:
    """Count the stones that each player's shortest path through each node still needs, `[B, N, 2]` int64.

    Args:
        stones: `[B, N]` int8.
        neighbours: `[B, N, 6]` int64.
    """
    count, nodes = stones.shape
    colour = constant((FIRST, SECOND), stones, dtype=stones.dtype)
    at = stones.unsqueeze(-1)
    price = torch.where(at == colour, 0.0, torch.where(at == EMPTY, 1.0, float(FAR)))
    # Four floods at once, from top, bottom, left and right: four numbers per node.
    prices = price.repeat_interleave(2, -1).view(count * nodes, 4)
    far = torch.full((count, nodes, 4), float(FAR), device=stones.device)
    border = torch.arange(4, device=stones.device)
    far[:, nodes - 4 + border, border] = 0.0
    first = torch.arange(0, count * nodes, nodes, device=stones.device).view(-1, 1, 1)
    near = (neighbours + first).view(-1, neighbours.shape[-1])
    far = _shortest_paths(far.view(count * nodes, 4), prices, near, rounds=nodes).view(count, nodes, 2, 2)
    return (far.sum(-1) - price).long()


def _shortest_paths(far: Tensor, price: Tensor, near: Tensor, *, rounds: int) -> Tensor:
    """Relax path costs to each node, its own price included, `[M, 4]`; `near` `[M, 6]` holds neighbours."""
    sides = near.t().contiguous().unbind(0)
    for _ in range(rounds):
        # Whole rows per neighbour are two to three times faster than a minimum of six within each row.
        nearest = far.index_select(0, sides[0])
        for side in sides[1:]:
            nearest = torch.minimum(nearest, far.index_select(0, side))
        nearer = torch.minimum(far, nearest.add_(price).clamp_(max=float(FAR)))
        # On a GPU the synchronisation of this check costs more than another round.
        if price.device.type == "cpu" and torch.equal(nearer, far):
            break
        far = nearer
    return far


def connects(own: Tensor, neighbours: Tensor, *, player: Tensor) -> Tensor:
    """Return whether the nodes `own` connect the two sides of `player`, by flood fill, `[B]` bool.

    Args:
        own: `[B, N]` bool, the player's stones, borders included.
        neighbours: `[B, N, 6]` int64.
        player: `[B]` int64.
    """
    nodes = own.shape[-1]
    start = (nodes - 4 + 2 * player).unsqueeze(-1)
    at_goal = (neighbours == start.unsqueeze(-1) + 1).any(-1)
    flooded = torch.zeros_like(own).scatter(1, start, True)
    sides = neighbours.movedim(-1, 0).contiguous().unbind(0)
    for _ in range(nodes):
        touched = flooded.gather(1, sides[0])
        for side in sides[1:]:
            touched = touched | flooded.gather(1, side)
        wider = flooded | (own & touched)
        if own.device.type == "cpu" and torch.equal(wider, flooded):
            break
        flooded = wider
    return (flooded & at_goal).any(-1)
