"""What the player to move sees: the board as a graph of cells and borders, in its own colours."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.hex import dynamics
from edgewise.systems.hex.config import SMALLEST, HexConfig

CELL, MY_BORDER, THEIR_BORDER = range(3)
NODE_FEATURES = 3
"""Whether a node is mine, theirs or free, borders included."""
DISTANCE_FEATURES = 4
"""Mine and theirs: how short a way through the node is, beside the shortest, and how short that is."""
SLACK = 4
"""Stones beyond the shortest way at which all ways are alike."""


def neighbour_tables(capacity: int) -> Tensor:
    """Neighbours of every board up to `capacity`, `[K, N, 6]`, by side less the smallest."""
    return torch.stack([dynamics.neighbour_table(size, capacity) for size in range(SMALLEST, capacity + 1)])


def graph_spec(config: HexConfig) -> GraphSpec:
    """Cells and four borders; edges where two of them touch, looked up by the board's side."""
    boards = [_edges(size, config.capacity) for size in range(SMALLEST, config.capacity + 1)]
    bank = TopologyBank.from_edge_lists(boards)
    features = NODE_FEATURES + config.distances * DISTANCE_FEATURES
    return GraphSpec(config.capacity**2 + 4, features, edges=Topology(bank), node_types=3)


def _edges(size: int, capacity: int) -> list[tuple[int, int]]:
    """All touching pairs of a board, both ways."""
    near = dynamics.touching(size, capacity)
    pairs = {(cell, node) for cell, nodes in enumerate(near) for node in nodes}
    return sorted(pairs | {(node, cell) for cell, node in pairs})


def graph(state: TensorDict) -> dict[str, Tensor]:
    """The graph of the games in `state`, `[B]`.

    Stones and borders are mine or theirs, not the first or the second player's: by the board's symmetry
    (colours exchanged, rows and columns too) both players see the same game, and one policy plays both.
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
    """How near both players are to joining their sides, the mover first, `[B, N, 4]` float in [0, 1].

    For each player 1 on its shortest ways, falling to 0 where a way lacks `SLACK` stones more, and
    `1 / (1 + m)` at every node, where m is how many stones its shortest way lacks.

    Args:
        state: of the games, `[B]`.
        neighbours: `[B, N, 6]` int64.
    """
    missing = dynamics.missing_stones(state["stones"], neighbours)
    swapped = (state["player"] == 1).view(-1, 1, 1)
    missing = torch.where(swapped, missing.flip(-1), missing)
    least = missing.amin(1, keepdim=True)
    short = (1 - (missing - least) / SLACK).clamp(min=0)
    near = (1 / (1 + least)).expand_as(short)
    return torch.cat((short, near), -1).float()
