"""Where tiles can go: placements, and the moves of every kind of tile, for many games at once.

Everything is from the mover's view: slots 0 to H - 1 are the mover's tiles, the others the opponent's. Moves
are marked in a table `[B, S, N + 1]` of tiles and nodes; S is H, or P where Pillbugs can throw the opponent's
tiles. The last column collects what is not a move.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from edgewise.systems.hive import bitboards
from edgewise.systems.hive.bitboards import LOW, SHIFT, can_read
from edgewise.systems.hive.board import HEXES, STEPS, Board, pinned
from edgewise.systems.hive.pieces import (
    ANT,
    BEETLE,
    GRASSHOPPER,
    LADYBUG,
    MOSQUITO,
    PILLBUG,
    QUEEN,
    SPIDER,
    Hand,
)

LONGEST_JUMP = 28


@dataclass(frozen=True)
class Movers:
    """Tiles of one kind of movement that may move, as rows of a list or all of them.

    Attributes:
        game: `[R]` int64.
        slot: `[R]` int64.
        ready: `[R]` bool; all true where the list holds only tiles that may move.
    """

    game: Tensor
    slot: Tensor
    ready: Tensor


def move_table(board: Board, hand: Hand, *, turn: Tensor, last: Tensor) -> Tensor:
    """Return the legal moves of the mover, `[B, S, N + 1]` bool; no true entry if it must pass.

    Args:
        board: of the games, the mover's tiles first.
        hand: of both players.
        turn: `[B]` int64, turns that the mover has had.
        last: `[B]` int64, slot of the tile that moved in the previous ply; -1 for none.
    """
    size, tiles = hand.size, hand.tiles
    games, device = len(turn), turn.device
    sources = tiles if PILLBUG in hand else size
    moves = torch.zeros(games, sources, hand.nodes + 1, dtype=torch.bool, device=device)
    moves[:, :size, tiles:-1] = placements(board, hand, turn=turn)
    queen_down = board.level[:, hand.queen] >= 0
    if can_read(queen_down) and not bool(queen_down.any()):
        return moves
    fixed = pinned(board)
    slot = torch.arange(tiles, device=device)
    resting = slot == last.unsqueeze(-1)
    awake = board.top & ~resting & queen_down.unsqueeze(-1)
    ready = (awake & ~fixed)[:, :size]
    abilities = _abilities(board, hand)
    _add_steps(moves, board, ready, abilities)
    _add_jumps(moves, board, _movers(hand, GRASSHOPPER, ready, abilities))
    occupied = board.words(board.top)
    _add_ants(moves, board, occupied, _movers(hand, ANT, ready, abilities))
    _add_spiders(moves, board, occupied, _movers(hand, SPIDER, ready, abilities))
    if LADYBUG in hand:
        _add_ladybugs(moves, board, _movers(hand, LADYBUG, ready, abilities))
    if PILLBUG in hand:
        throwing = awake[:, :size] & (board.level[:, :size] == 0)
        _add_throws(
            moves, board, _movers(hand, PILLBUG, throwing, abilities), movable=board.top & ~resting & ~fixed
        )
    return moves


def placements(board: Board, hand: Hand, *, turn: Tensor) -> Tensor:
    """Return where the mover can place tiles, `[B, H, C]` bool; of equal tiles in hand, only the first.

    A new tile touches an own uppermost tile and none of the opponent's. The first tile is not the queen, and
    in the fourth turn only the queen may be placed if it is still in hand.
    """
    size, device = hand.size, turn.device
    held = board.level[:, :size] < 0
    kinds = torch.tensor(hand.kinds, device=device)
    repeated = torch.nn.functional.pad(kinds[1:] == kinds[:-1], (1, 0))
    before = torch.nn.functional.pad(held[:, :-1], (1, 0))
    first = held & ~(repeated & before)
    queen = kinds == QUEEN
    first = first & ~(queen & (turn == 0).unsqueeze(-1))
    late = (turn >= 3) & held[:, hand.queen]
    first = first & (queen | ~late.unsqueeze(-1))
    mine = torch.arange(hand.tiles, device=device) < size
    own, other = (bitboards.neighbours(board.words(board.top & side)) for side in (mine, ~mine))
    allowed = bitboards.contains(own & ~other, board.empty & LOW, board.empty >> SHIFT)
    begins = ~(board.on_board[:, :size].any(-1, keepdim=True))
    allowed = (allowed | begins) & board.empty_mask
    return first.unsqueeze(-1) & allowed.unsqueeze(1)


def _abilities(board: Board, hand: Hand) -> Tensor:
    """Return which kinds each own tile moves like, `[B, H, 8]` bool.

    A Mosquito on the ground moves like all uppermost tiles around it, and like a Beetle on a stack.
    """
    kinds = torch.tensor(hand.kinds, device=board.level.device)
    own = torch.nn.functional.one_hot(kinds, 8).bool()
    able = own.expand(len(board.level), -1, -1)
    if MOSQUITO not in hand:
        return able
    slot = hand.slots(MOSQUITO)[0]
    near = kinds.repeat(2)[board.near_top[:, slot]]
    copied = (torch.nn.functional.one_hot(near, 8) * (board.near_height[:, slot] > 0).unsqueeze(-1)).amax(1)
    beetle = torch.arange(8, device=near.device) == BEETLE
    able = able.clone()
    able[:, slot] = torch.where(board.level[:, slot, None] > 0, beetle, copied.bool())
    able[:, slot, MOSQUITO] = False
    return able


def _movers(hand: Hand, kind: int, ready: Tensor, abilities: Tensor) -> Movers:
    """Return the own tiles that may move like `kind`; also others where values cannot be read."""
    slots = torch.tensor(hand.slots(kind, MOSQUITO), dtype=torch.int64, device=ready.device)
    able = ready[:, slots] & abilities[:, slots, kind]
    if can_read(able):
        game, place = able.nonzero(as_tuple=True)
        return Movers(game, slots[place], able.new_ones(len(game)))
    games = torch.arange(len(able), device=able.device)
    return Movers(games.repeat_interleave(len(slots)), slots.repeat(len(able)), able.flatten())


def _mark(moves: Tensor, board: Board, movers: Movers, hexes: Tensor, reached: Tensor) -> None:
    """Mark moves to `hexes` `[R, K]` where `reached` `[R, K]`."""
    node = board.node[movers.game.unsqueeze(-1), hexes].long()
    node = torch.where(reached & movers.ready.unsqueeze(-1), node, moves.shape[-1] - 1)
    flat = moves.view(-1)
    width = moves.shape[1] * moves.shape[2]
    row = movers.game * width + movers.slot * moves.shape[2]
    flat[(row.unsqueeze(-1) + node).flatten()] = True


def _around(board: Board, game: Tensor, words: Tensor) -> Tensor:
    """Return which empty hexes around the hive of `game` `[R]` are in the sets `[R, Y]`, `[R, C]` bool."""
    empty = board.empty[game]
    return bitboards.contains(words, empty & LOW, empty >> SHIFT) & board.empty_mask[game]


def _mark_around(moves: Tensor, board: Board, movers: Movers, found: Tensor) -> None:
    """Mark moves to the empty hexes `found` `[R, C]` around the hive."""
    tiles = board.level.shape[1]
    moves[movers.game, movers.slot, tiles:-1] |= found & movers.ready.unsqueeze(-1)


def _add_steps(moves: Tensor, board: Board, ready: Tensor, abilities: Tensor) -> None:
    """Add the moves to adjacent hexes: slides of Queens and Pillbugs, slides and climbs of Beetles."""
    size = ready.shape[1]
    height, level = board.near_height[:, :size], board.level[:, :size, None].to(torch.int16)
    occupied = height > 0
    on_ground = level == 0
    slides = ~occupied & (occupied.roll(1, -1) ^ occupied.roll(-1, -1)) & on_ground
    barrier = torch.maximum(level, height)
    climbs = ~((height.roll(1, -1) > barrier) & (height.roll(-1, -1) > barrier))
    climbs = torch.where(on_ground & ~occupied, slides, climbs)
    walks = (abilities[..., QUEEN] | abilities[..., PILLBUG]).unsqueeze(-1)
    reached = (walks & slides) | (abilities[..., BEETLE].unsqueeze(-1) & climbs)
    node = board.node.gather(1, board.near[:, :size].flatten(1)).view_as(reached).long()
    node = torch.where(reached & ready.unsqueeze(-1), node, moves.shape[-1] - 1)
    # Destinations of one tile differ, except for the column that is dropped.
    marked = torch.zeros_like(moves[:, :size]).scatter_(2, node, True)
    moves[:, :size] |= marked


def _add_jumps(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the jumps of Grasshoppers: straight over at least one tile to the first empty hex."""
    step = torch.tensor(STEPS, device=movers.game.device)
    hexes = board.near[movers.game, movers.slot]
    game = movers.game.unsqueeze(-1)
    jumps = occupied = board.codes[game, hexes] > 0
    for _ in range(LONGEST_JUMP):
        if can_read(occupied) and not bool(occupied.any()):
            break
        hexes = torch.where(occupied, hexes + step, hexes)
        occupied = board.codes[game, hexes] > 0
    _mark(moves, board, movers, hexes, jumps)


def _lifted(board: Board, occupied: Tensor, movers: Movers) -> tuple[Tensor, Tensor]:
    """Return the hive without the mover and the mover's hex, both as bits `[R, Y]`."""
    start = _single(board.hex[movers.game, movers.slot], rows=board.rows)
    return occupied[movers.game] & ~start, start


def _single(hexes: Tensor, *, rows: int) -> Tensor:
    """Return sets of one hex each, `[R]` to bits `[R, Y]`."""
    at = hexes.unsqueeze(-1)
    return bitboards.from_cells(at & LOW, at >> SHIFT, torch.ones_like(at, dtype=torch.bool), rows=rows)


def _add_ants(moves: Tensor, board: Board, occupied: Tensor, movers: Movers) -> None:
    """Add the moves of Ants: any number of slides."""
    rest, start = _lifted(board, occupied, movers)
    ways = bitboards.slides(rest)
    reached = bitboards.flood(start, lambda words: bitboards.slide(words, ways))
    _mark_around(moves, board, movers, _around(board, movers.game, reached & ~start))


def _add_spiders(moves: Tensor, board: Board, occupied: Tensor, movers: Movers) -> None:
    """Add the moves of Spiders: exactly three slides, to no hex twice.

    Paths are followed apart by their first hex: the second hex is then any but the start, and the third any
    but the start and the first.
    """
    rest, start = _lifted(board, occupied, movers)
    ways = bitboards.slides(rest)
    near = board.near[movers.game, movers.slot]
    firsts = bitboards.contains(bitboards.slide(start, ways), near & LOW, near >> SHIFT)
    row, direction = _listed(firsts)
    first = _single(near[row, direction], rows=board.rows)
    first = torch.where(firsts[row, direction].unsqueeze(-1), first, 0)
    ways = (ways[0][row], ways[1][row], ways[2][row])
    second = bitboards.slide(first, ways) & ~start[row]
    third = bitboards.slide(second, ways) & ~first & ~start[row]
    paths = torch.zeros(len(start), board.empty.shape[1], dtype=torch.int8, device=start.device)
    paths.index_add_(0, row, _around(board, movers.game[row], third).to(torch.int8))
    _mark_around(moves, board, movers, paths > 0)


def _listed(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Return row and column of the true entries of `[R, K]`; of all entries where values cannot be read."""
    if can_read(flags):
        row, column = flags.nonzero(as_tuple=True)
        return row, column
    rows, columns = flags.shape
    row = torch.arange(rows, device=flags.device).repeat_interleave(columns)
    return row, torch.arange(columns, device=flags.device).repeat(rows)


def _add_ladybugs(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the moves of Ladybugs: two steps on top of the hive, then one down to an empty hex."""
    step = torch.tensor(STEPS, device=movers.game.device)
    start = board.hex[movers.game, movers.slot].view(-1, 1)
    game = movers.game.view(-1, 1)

    def ring(hexes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the neighbours of hexes `[R, K]` and their heights without the mover, `[R, K, 6]`."""
        near = (hexes.unsqueeze(-1) + step) % HEXES
        height = board.codes[game.unsqueeze(-1), near] >> 5
        return near, torch.where(near == start.unsqueeze(-1), 0, height)

    def passes(height: Tensor, level: Tensor) -> Tensor:
        """Return which of the six steps from `level` no gate blocks."""
        barrier = torch.maximum(height, level.unsqueeze(-1))
        return ~((height.roll(1, -1) > barrier) & (height.roll(-1, -1) > barrier))

    near, height = ring(start)
    firsts, first_height = near.flatten(1), height.flatten(1)
    up = (height > 0) & passes(height, torch.zeros_like(height[..., 0]))
    near, height = ring(firsts)
    across = (height > 0) & passes(height, first_height) & up.flatten(1).unsqueeze(-1)
    seconds, second_height = near.flatten(1), height.flatten(1)
    near, height = ring(seconds)
    down = (height == 0) & passes(height, second_height) & across.flatten(1).unsqueeze(-1)
    ends = near.flatten(1)
    _mark(moves, board, movers, ends, down.flatten(1) & (ends != start))


def _add_throws(moves: Tensor, board: Board, movers: Movers, *, movable: Tensor) -> None:
    """Add the throws of Pillbugs: an adjacent single tile of either player to an adjacent empty hex.

    Args:
        moves: `[B, P, N + 1]`.
        board: of the games.
        movers: Pillbugs, and Mosquitoes beside one, that may throw.
        movable: `[B, P]` bool, tiles that are uppermost, not pinned, and did not move in the previous ply.
    """
    near, height = board.near[movers.game, movers.slot], board.near_height[movers.game, movers.slot]
    top = board.near_top[movers.game, movers.slot]
    gate = (height.roll(1, -1) > 1) & (height.roll(-1, -1) > 1)
    taken = (height == 1) & movable[movers.game.unsqueeze(-1), top] & ~gate
    given = (height == 0) & ~gate
    both = taken.unsqueeze(-1) & given.unsqueeze(-2) & movers.ready.view(-1, 1, 1)
    node = board.node[movers.game.unsqueeze(-1), near].long()
    node = torch.where(both, node.unsqueeze(-2), moves.shape[-1] - 1)
    row = movers.game.unsqueeze(-1) * moves.shape[1] + top
    moves.view(-1)[(row.unsqueeze(-1) * moves.shape[2] + node).flatten()] = True
