"""Observation of Hex: the board as a graph of cells and borders, from the mover's view."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.hex import circuit, dynamics
from edgewise.systems.hex.config import SMALLEST, HexConfig

CELL, MY_BORDER, THEIR_BORDER = range(3)
NODE_FEATURES = 3
"""One-hot owner of a node, borders included: mine, theirs or free."""
DISTANCE_FEATURES = 4
"""For the mover and the opponent: path length through the node relative to the shortest, and the shortest."""
CURRENT_FEATURES = 4
"""For the mover and the opponent: share of its current through the node, and its resistance."""
SMALLEST_CURRENT = 1e-4
"""Product of currents that is added before a logarithm."""
SLACK = 4
"""Extra stones beyond the shortest path at which the feature reaches 0."""


def neighbour_tables(capacity: int) -> Tensor:
    """Build the neighbour tables of all sides up to `capacity`, `[K, N, 6]`, indexed by side - SMALLEST."""
    return torch.stack([dynamics.neighbour_table(size, capacity) for size in range(SMALLEST, capacity + 1)])


def graph_spec(config: HexConfig) -> GraphSpec:
    """Build the graph spec: cells and four borders, with edges looked up by the side of the board."""
    boards = [_edges(size, config.capacity) for size in range(SMALLEST, config.capacity + 1)]
    bank = TopologyBank.from_edge_lists(boards)
    features = NODE_FEATURES + config.distances * DISTANCE_FEATURES + config.currents * CURRENT_FEATURES
    return GraphSpec(config.capacity**2 + 4, features, edges=Topology(bank), node_types=3)


def _edges(size: int, capacity: int) -> list[tuple[int, int]]:
    """Return all pairs of adjacent nodes of a board, in both directions."""
    near = dynamics.cell_neighbours(size, capacity)
    pairs = {(cell, node) for cell, nodes in enumerate(near) for node in nodes}
    return sorted(pairs | {(node, cell) for cell, node in pairs})


def graph(state: TensorDict) -> dict[str, Tensor]:
    """Build the graph of the games in `state`, `[B]`.

    Stones and borders are marked as mine or theirs, not by player. The board is symmetric under an exchange
    of colours and of rows with columns, so one policy can play both sides.
    """
    stones, size, player = state["stones"], state["size"], state["player"]
    mine = stones == (player + 1).unsqueeze(-1)
    free = stones == dynamics.EMPTY
    theirs = ~(mine | free)
    node = torch.arange(stones.shape[-1], device=stones.device)
    border = node >= stones.shape[-1] - 4
    return {
        "x": torch.stack((mine, theirs, free), -1).float(),
        "node_mask": (node < size.square().unsqueeze(-1)) | border,
        "node_type": border * torch.where(mine, MY_BORDER, THEIR_BORDER),
        "topology": size - SMALLEST,
    }


def distances(state: TensorDict, neighbours: Tensor) -> Tensor:
    """Compute the distance features, the mover before the opponent, `[B, N, 4]` float in [0, 1].

    The first feature is 1 on a player's shortest paths and falls to 0 where a path needs `SLACK` more stones.
    The second is `1 / (1 + m)` at every node, where m is the number of stones the shortest path needs.

    Args:
        state: state of the games, `[B]`.
        neighbours: `[B, N, 6]` int64.
    """
    missing = dynamics.missing_stones(state["stones"], neighbours)
    swapped = (state["player"] == 1).view(-1, 1, 1)
    missing = torch.where(swapped, missing.flip(-1), missing)
    least = missing.amin(1, keepdim=True)
    short = (1 - (missing - least) / SLACK).clamp(min=0)
    near = (1 / (1 + least)).expand_as(short)
    return torch.cat((short, near), -1).float()


def mover_currents(state: TensorDict) -> tuple[Tensor, Tensor]:
    """Compute shares of current `[B, N, 2]` and resistances `[B, 2]`, the mover before the opponent."""
    shares, resistance = circuit.currents(state["stones"], state["size"])
    swapped = (state["player"] == 1).unsqueeze(-1)
    return (
        torch.where(swapped.unsqueeze(-1), shares.flip(-1), shares),
        torch.where(swapped, resistance.flip(-1), resistance),
    )


def current_features(shares: Tensor, resistance: Tensor) -> Tensor:
    """Return the shares of current and, at every node, `1 / (1 + resistance)`, `[B, N, 4]` in [0, 1]."""
    near = 1 / (1 + resistance)
    return torch.cat((shares, near.unsqueeze(1).expand_as(shares)), -1)


def cell_scores(shares: Tensor) -> Tensor:
    """Score each node by the logarithm of the product of both currents through it, `[B, N]`."""
    return (shares.prod(-1) + SMALLEST_CURRENT).log()
