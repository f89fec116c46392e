"""Observation of Hive: a graph of tiles and of the empty hexes around the hive, from the mover's view.

Nodes are the mover's tiles, the opponent's tiles, on the board or in hand, and the empty hexes that touch the
hive. Edges join neighbouring hexes, tiles of one stack, and each tile with the hexes it can legally go to.
"""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.scale.devices import constant
from edgewise.systems.hive import bitboards, dynamics
from edgewise.systems.hive.bitboards import SHIFT, WIDTH
from edgewise.systems.hive.board import RINGS, STEPS, Board, look_up
from edgewise.systems.hive.pieces import HIGHEST, Hand

ON_BOARD, IN_HAND, EMPTY = range(3)
NODE_FEATURES = 23
"""Kind (8), mine, theirs, on the board, in hand, empty hex, level, covered, moved last; on every node whether
the mover has the first seat, its turn up to the fifth, and earlier occurrences of the position; then for the
own and the opponent's queen the occupied share of the hexes around it, on every node, and whether the node is
beside it."""
ADJACENT, ABOVE, BELOW, MOVE = range(4)
EDGE_FEATURES = 4
"""One-hot type of an edge: to an adjacent hex, to the tile above, to the tile below, a legal move."""

REPEAT = 3.0
"""Hexes of pressure that a move must gain to outweigh one earlier occurrence of the position after it."""

SIDES = tuple(float(sum(ring)) for ring in RINGS)
"""Occupied hexes around a hex, by `Board.ring`."""


def first_move_edge(hand: Hand) -> int:
    """Return the edge slot of the first move, after the sides of nodes and two edges per tile in stacks."""
    return 6 * hand.nodes + 2 * hand.tiles


def graph_spec(hand: Hand, max_moves: int) -> GraphSpec:
    """Build the graph spec for a hand and a capacity of moves."""
    edges = Explicit(first_move_edge(hand) + max_moves, EDGE_FEATURES)
    return GraphSpec(hand.nodes, NODE_FEATURES, edges=edges, node_types=3)


def graph(state: TensorDict, board: Board, hand: Hand) -> dict[str, Tensor]:
    """Build the graphs of the games in `state`, `[B]`, from their boards, see `dynamics.mover_board`."""
    x, node_type = _nodes(state, board, hand)
    parts = (_sides(board, hand), _stacks(board), _moves(state, board, hand))
    sources, targets, exist = zip(*parts, strict=True)
    mask = torch.cat(exist, 1)
    index = torch.empty(len(mask), 2, mask.shape[1], dtype=torch.int64, device=mask.device)
    torch.cat(sources, 1, out=index[:, 0])
    torch.cat(targets, 1, out=index[:, 1])
    return {
        "x": x,
        "node_mask": torch.cat((torch.ones_like(board.top), board.empty_mask), 1),
        "node_type": node_type,
        "edge_index": index,
        "edge_mask": mask,
        "edge_attr": _edge_types(hand, parts[2][2].shape[1], mask.device).expand(*mask.shape, -1),
    }


def move_scores(state: TensorDict, board: Board, hand: Hand) -> Tensor:
    """Return what each listed move gains in pressure, less `REPEAT` for each of its `repeats`, `[B, K]`."""
    return pressure_gains(state, board, hand) - REPEAT * repeats(state, board, hand)


def repeats(state: TensorDict, board: Board, hand: Hand) -> Tensor:
    """Count how often the position after each listed move has occurred before, `[B, K]` float."""
    _, target, exists = _moves(state, board, hand)
    slot, q, r = state["moves"].long().unbind(-1)
    stays = (slot == hand.tiles) | ~exists
    slot = slot.masked_fill(stays, 0)
    kind = constant((*hand.kinds, *(8 + kind for kind in hand.kinds)), state["q"])
    level = torch.cat((board.level, torch.full_like(board.empty, -1, dtype=board.level.dtype)), 1)
    before = dynamics.tile_key(kind, state["q"], state["r"], state["level"])
    after = dynamics.tile_key(kind[slot], q, r, level.gather(1, target) + 1)
    change = (after - before.gather(1, slot)).masked_fill(stays, 0)
    rest = before.sum(-1) + dynamics.player_key(1 - state["player"])
    # Only positions with the same player to move, every second one, can be the same.
    earlier = state["history"][:, 1:].flip(1)[:, 1::2]
    same = (rest.unsqueeze(-1) + change).unsqueeze(-1) == earlier.unsqueeze(1)
    return same.sum(-1).masked_fill(~exists, 0).float()


def pressure_gains(state: TensorDict, board: Board, hand: Hand) -> Tensor:
    """Return by how many hexes each listed move changes the pressure on the queens, `[B, K]`.

    That is the change of the number of occupied hexes around the opponent's queen, minus that around the own.
    """
    source, target, exists = _moves(state, board, hand)
    hexes = torch.cat((board.hex, board.empty), 1)
    start, end = hexes.gather(1, source), hexes.gather(1, target)
    leaves, fills = board.level.gather(1, source) == 0, target >= hand.tiles
    total = torch.zeros(source.shape, device=source.device)
    for queen, weight in ((hand.queen, -1.0), (hand.size + hand.queen, 1.0)):
        place, down = board.hex[:, queen, None], board.level[:, queen, None] >= 0
        beside = fills & _adjacent(end, place)
        change = (beside.float() - (leaves & _adjacent(start, place)).float()) * down
        # The queen itself moves: what is around its new hex counts, without itself.
        after = _sides_around(bitboards.rings(board.occupied, end)) - (beside & down).float()
        before = _sides_around(board.ring[:, queen, None])
        total = total + weight * torch.where(source == queen, after - before, change)
    passes = state["moves"][..., 0] == hand.tiles
    return total.masked_fill(passes | ~exists, 0.0)


def _sides_around(ring: Tensor) -> Tensor:
    """Count the occupied hexes around a hex, from its `Board.ring`."""
    return look_up(SIDES, ring, dtype=torch.float32)


def _adjacent(one: Tensor, other: Tensor) -> Tensor:
    """Return whether two hexes of the board touch, from their numbers."""
    step = (one - other).abs()
    return (step == 1) | (step == WIDTH - 1) | (step == WIDTH)


def _nodes(state: TensorDict, board: Board, hand: Hand) -> tuple[Tensor, Tensor]:
    """Return node features `[B, N, F]` and node types `[B, N]`."""
    games, tiles = board.level.shape
    device, cells = board.level.device, board.empty.shape[1]
    kinds = constant(hand.kinds * 2, board.level)
    slot = torch.arange(tiles, device=device)
    last = dynamics.swap_slot(state["last"], state["player"], tiles)
    owner = (slot < hand.size).expand(games, -1)
    flags = (
        owner,
        ~owner,
        board.on_board,
        ~board.on_board,
        torch.zeros_like(owner),
        board.level.clamp(min=0) / HIGHEST,
        board.on_board & ~board.top,
        slot == last.unsqueeze(-1),
    )
    own = torch.stack([flag.float() for flag in flags], -1)
    kind = torch.nn.functional.one_hot(kinds, 8).float().expand(games, -1, -1)
    hexes = torch.zeros(games, cells, 16, device=device)
    hexes[..., 12] = board.empty_mask
    everywhere = torch.stack(
        (
            (state["player"] == 0).float(),
            (state["plies"] // 2).clamp(max=4) / 4,
            (dynamics.repetitions(state) - 1) / 2,
        ),
        -1,
    )
    x = torch.cat((torch.cat((kind, own), -1), hexes), 1)
    x = torch.cat((x, everywhere.unsqueeze(1).expand(-1, tiles + cells, -1), _queens(board, hand)), -1)
    held = torch.where(board.on_board, ON_BOARD, IN_HAND)
    return x, torch.cat((held, torch.full_like(board.empty, EMPTY)), 1)


def _queens(board: Board, hand: Hand) -> Tensor:
    """Return what each node has to do with the own and the opponent's queen, `[B, N, 4]`; zeros in hand."""
    hexes = torch.cat((board.hex, board.empty), 1)
    here = torch.cat((board.on_board, board.empty_mask), 1)
    parts = []
    for queen in (hand.queen, hand.size + hand.queen):
        down = board.level[:, queen, None] >= 0
        share = _sides_around(board.ring[:, queen, None]) / 6
        beside = _adjacent(hexes, board.hex[:, queen, None]) & here & down
        parts += [share.expand_as(hexes), beside.float()]
    return torch.stack(parts, -1)


def _sides(board: Board, hand: Hand) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges between neighbouring hexes, six slots per node: source, target and mask."""
    games = len(board.level)
    step = constant(STEPS, board.level)
    near = (torch.cat((board.hex, board.empty), 1).unsqueeze(-1) + step).flatten(1)
    node = board.node.gather(1, near)
    here = torch.cat((board.top, board.empty_mask), 1)
    source = torch.arange(hand.nodes, device=near.device).repeat_interleave(6).expand(games, -1)
    return source, node.clamp(min=0).long(), (node >= 0) & here.repeat_interleave(6, 1)


def _stacks(board: Board) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges from each tile to the one above it, then to the one below it."""
    tiles = board.level.shape[1]
    same = board.hex.unsqueeze(-1) == board.hex.unsqueeze(-2)
    rises = board.level.unsqueeze(-1) + 1 == board.level.unsqueeze(-2)
    joined = same & rises & board.on_board.unsqueeze(-1)
    slot = torch.arange(tiles, device=joined.device)
    # One column gives the tile above or below, as the only one of its row, and one whether there is any.
    number = torch.stack((slot, torch.ones_like(slot)), 1).float()
    found = torch.cat((joined.float() @ number, joined.mT.float() @ number), 1).long()
    return slot.repeat(len(joined), 2), found[..., 0], found[..., 1] > 0


def _moves(state: TensorDict, board: Board, hand: Hand) -> tuple[Tensor, Tensor, Tensor]:
    """Return the edges of the listed moves; a pass is an edge from the mover's queen to itself."""
    slot, q, r = state["moves"].long().unbind(-1)
    source = dynamics.swap_slot(slot, state["player"], hand.tiles)
    exists, passes = slot >= 0, slot == hand.tiles
    hexes = (r - board.upper.unsqueeze(-1) << SHIFT) + q - board.left.unsqueeze(-1)
    target = board.node.gather(1, torch.where(exists & ~passes, hexes, 0)).clamp(min=0).long()
    source = source.clamp(min=0).masked_fill(passes, hand.queen)
    return source, target.masked_fill(passes, hand.queen), exists


def _edge_types(hand: Hand, moves: int, device: torch.device) -> Tensor:
    """Return the one-hot types of all edge slots, `[E, 4]`."""
    counts = (6 * hand.nodes, hand.tiles, hand.tiles, moves)
    kinds = torch.cat([torch.full((count,), kind, device=device) for kind, count in enumerate(counts)])
    return (kinds.unsqueeze(-1) == torch.arange(EDGE_FEATURES, device=device)).float()
