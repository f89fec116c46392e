"""Where tiles can go: placements, and the moves of every kind of tile, for many games at once.

Everything is from the mover's view: slots 0 to H - 1 are the mover's tiles, the others the opponent's. Moves
are marked in a table `[B, S, W]`, see `move_table.py`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.scale.devices import constant
from edgewise.systems.hive import bitboards, windows
from edgewise.systems.hive.bitboards import can_read
from edgewise.systems.hive.board import (
    ENTRY,
    RINGS,
    SLIDE,
    STEPS,
    Board,
    around,
    listed,
    look_up,
    pinned,
)
from edgewise.systems.hive.move_table import (
    Movers,
    mark,
    mark_around,
    mark_rows,
    mark_window,
    of_movers,
    rows_of,
    table_row,
)
from edgewise.systems.hive.pieces import (
    ANT,
    BEETLE,
    GRASSHOPPER,
    HIGHEST,
    LADYBUG,
    MOSQUITO,
    PILLBUG,
    QUEEN,
    SPIDER,
    Hand,
)

LONGEST_JUMP = 28


def move_table(board: Board, hand: Hand, *, turn: Tensor, last: Tensor) -> Tensor:
    """Return the legal moves of the mover, `[B, S, W]` bool; no true entry if it must pass.

    Columns from N on are false.

    Args:
        board: of the games, the mover's tiles first.
        hand: of both players.
        turn: `[B]` int64, turns that the mover has had.
        last: `[B]` int64, slot of the tile that moved in the previous ply; -1 for none.
    """
    size, tiles = hand.size, hand.tiles
    sources = tiles if PILLBUG in hand else size
    moves = placements(board, hand, turn=turn)
    if sources > size:
        moves = torch.nn.functional.pad(moves, (0, 0, 0, size))
    queen_down = board.level[:, hand.queen] >= 0
    if can_read(queen_down) and not bool(queen_down.any()):
        return moves
    occupied = board.occupied
    joined = bitboards.passages(occupied)
    air = bitboards.open_air(joined)
    resting = torch.arange(tiles, device=turn.device) == last.unsqueeze(-1)
    awake = board.top & ~resting & queen_down.unsqueeze(-1)
    free = awake & ~pinned(board, air, awake & _at_stake(board, hand))
    ready = free[:, :size]
    copied = _copied(board, hand)
    _add_slides(moves, board, _movers(hand, (QUEEN, PILLBUG), ready, copied))
    if BEETLE in hand:
        _add_climbs(moves, board, _movers(hand, (BEETLE,), ready, copied))
    if GRASSHOPPER in hand:
        _add_jumps(moves, board, _movers(hand, (GRASSHOPPER,), ready, copied))
    if ANT in hand:
        _add_ants(moves, board, _movers(hand, (ANT,), ready, copied), joined=joined, air=air)
    if SPIDER in hand:
        _add_spiders(moves, board, _movers(hand, (SPIDER,), ready, copied))
    if LADYBUG in hand:
        _add_ladybugs(moves, board, _movers(hand, (LADYBUG,), ready, copied))
    if PILLBUG in hand:
        throwing = awake[:, :size] & (board.level[:, :size] == 0)
        _add_throws(
            moves,
            board,
            _movers(hand, (PILLBUG,), throwing, copied),
            movable=free,
        )
    moves[..., hand.nodes] = False
    return moves


def _at_stake(board: Board, hand: Hand) -> Tensor:
    """Return the tiles that the mover could move or throw if nothing held them, `[B, P]` bool."""
    mine = torch.arange(hand.tiles, device=board.hex.device) < hand.size
    if PILLBUG not in hand:
        return mine.expand_as(board.hex)
    throwers = list(hand.slots(PILLBUG, MOSQUITO))
    words = bitboards.from_cells(board.hex[:, throwers], board.top[:, throwers], rows=board.own.shape[1])
    games = torch.arange(len(words), device=words.device)
    return mine | bitboards.contains(bitboards.neighbours(words), games, board.hex)


def placements(board: Board, hand: Hand, *, turn: Tensor) -> Tensor:
    """Return where the mover can place tiles, `[B, H, W]` bool; of equal tiles in hand, only the first.

    A new tile touches an own uppermost tile and none of the opponent's. The first tile is not the queen, and
    in the fourth turn only the queen may be placed if it is still in hand.
    """
    size, device = hand.size, turn.device
    held = board.level[:, :size] < 0
    kinds = constant(hand.kinds, turn)
    repeated = torch.nn.functional.pad(kinds[1:] == kinds[:-1], (1, 0))
    before = torch.nn.functional.pad(held[:, :-1], (1, 0))
    first = held & ~(repeated & before)
    queen = kinds == QUEEN
    first = first & ~(queen & (turn == 0).unsqueeze(-1))
    late = (turn >= 3) & held[:, hand.queen]
    first = first & (queen | ~late.unsqueeze(-1))
    near_own = bitboards.neighbours(board.own) & ~bitboards.neighbours(board.other)
    allowed = bitboards.contains(near_own, torch.arange(len(turn), device=device), board.empty)
    begins = ~(board.on_board[:, :size].any(-1, keepdim=True))
    allowed = (allowed | begins) & board.empty_mask
    return rows_of(first, table_row(board, allowed))


def _copied(board: Board, hand: Hand) -> Tensor | None:
    """Return which kinds the own Mosquito moves like, `[B, 8]` bool; None if there is none.

    On the ground it moves like all uppermost tiles around it, and like a Beetle on a stack.
    """
    if MOSQUITO not in hand:
        return None
    slot, device = hand.slots(MOSQUITO)[0], board.level.device
    codes = board.codes.gather(1, board.hex[:, slot, None] + constant(STEPS, board.hex))
    kinds = constant(hand.kinds * 2, board.hex)
    near = torch.where(codes > 0, kinds[(codes & 31).long()], MOSQUITO)
    copied = torch.zeros(len(codes), 8, dtype=torch.bool, device=device).scatter_(1, near, True)
    beetle = torch.arange(8, device=device) == BEETLE
    copied = torch.where(board.level[:, slot, None] > 0, beetle, copied)
    copied[:, MOSQUITO] = False
    return copied


def _movers(hand: Hand, kinds: tuple[int, ...], ready: Tensor, copied: Tensor | None) -> Movers:
    """Return the own tiles that may move like one of `kinds`; also others where values cannot be read.

    Args:
        hand: of both players.
        kinds: one or several.
        ready: `[B, H]` bool, tiles that may move.
        copied: of `_copied`.
    """
    slots = constant(hand.slots(*kinds), ready)
    able = ready.index_select(1, slots)
    if copied is not None:
        mosquito = constant(hand.slots(MOSQUITO), ready)
        copies = copied[:, list(kinds)].any(-1, keepdim=True)
        able = torch.cat((able, ready.index_select(1, mosquito) & copies), 1)
        slots = torch.cat((slots, mosquito))
    game, place = listed(able)
    return Movers(game, slots.index_select(0, place), able[game, place])


def _add_slides(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the moves of Queens and Pillbugs: one slide."""
    mark_around(moves, board, movers, look_up(SLIDE, of_movers(movers, board.ring)))


def _add_climbs(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the moves of Beetles: one slide, or one step up, down or along stacks that no gate blocks."""
    height, _ = _near(board, movers)
    level = of_movers(movers, board.level).unsqueeze(-1)
    before, after = _beside(height)
    barrier = torch.maximum(level, height)
    climbs = (before <= barrier) | (after <= barrier)
    slides = look_up(SLIDE, of_movers(movers, board.ring))
    mark_around(moves, board, movers, torch.where((level == 0) & (height == 0), slides, climbs))


def _near(board: Board, movers: Movers) -> tuple[Tensor, Tensor]:
    """Return height and slot of the uppermost tile of the hexes around the movers, `[R, 6]` int64."""
    hexes = around(board, movers.game, movers.slot) + (movers.game * board.codes.shape[1]).unsqueeze(-1)
    codes = board.codes.flatten().index_select(0, hexes.flatten()).view_as(hexes).long()
    return codes >> 5, codes & 31


def _beside(around: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is one direction before and after each of the six, `[..., 6]`."""
    return around.roll(1, -1), around.roll(-1, -1)


def _add_jumps(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the jumps of Grasshoppers: straight over at least one tile to the first empty hex."""
    row, direction = listed(look_up(RINGS, of_movers(movers, board.ring)))
    movers = Movers(*(each.index_select(0, row) for each in (movers.game, movers.slot, movers.ready)))
    step = constant(STEPS, row).index_select(0, direction)
    place = of_movers(movers, board.hex) + step + movers.game * board.codes.shape[1]
    codes = board.codes.flatten()
    jumps = occupied = codes.index_select(0, place) > 0
    for _ in range(LONGEST_JUMP):
        if can_read(occupied) and not bool(occupied.any()):
            break
        place = place + step * occupied
        occupied = codes.index_select(0, place) > 0
    node = board.node.flatten().index_select(0, place + movers.game)
    mark(moves, board, movers, node.unsqueeze(-1), jumps.unsqueeze(-1))


def _add_ants(
    moves: Tensor, board: Board, movers: Movers, *, joined: tuple[Tensor, Tensor, Tensor], air: Tensor
) -> None:
    """Add the moves of Ants: any number of slides.

    Empty hexes belong together if a tile could be carried from one to the other through the air, without
    lifting it over tiles or through gates. The edge of such a region is one closed line along the hive, so an
    Ant slides to every hex on it. Without the Ant, its hex joins the regions beside it that no gate
    separates from it, and nothing else changes. So regions are found once for all Ants of a game.

    Args:
        moves: `[B, S, W]`.
        board: of the games.
        movers: Ants that may move.
        joined: of `bitboards.passages`.
        air: `[B, Y]`, the region around the hive, see `bitboards.open_air`.
    """
    game, near = movers.game, around(board, movers.game, movers.slot)
    entry = look_up(ENTRY, of_movers(movers, board.ring))
    in_air = bitboards.contains(air, game, near)
    games = torch.arange(len(air), device=air.device)
    at_air = table_row(board, bitboards.contains(air, games, board.empty) & board.empty_mask)
    goes_out = (entry & in_air).any(-1, keepdim=True)
    reached = -goes_out.long() & at_air.index_select(0, game)
    row = listed((entry & ~in_air).any(-1, keepdim=True))[0]
    pocket = _pocket(board, game[row], near[row], (entry & ~in_air)[row], joined=joined)
    reached[row] |= table_row(board, pocket)
    # What touches only the Ant is no longer at the hive when it leaves.
    lonely = bitboards.contains(bitboards.touched_once(board.occupied), game, near)
    node = board.node.flatten().index_select(0, (near + (game * board.node.shape[1]).unsqueeze(-1)).flatten())
    reached.view(torch.bool).scatter_(1, torch.where(lonely, node.view_as(near), board.nodes).long(), False)
    mark_rows(moves, movers, reached)


def _pocket(
    board: Board, game: Tensor, near: Tensor, entry: Tensor, *, joined: tuple[Tensor, Tensor, Tensor]
) -> Tensor:
    """Return the empty hexes in regions behind gates and in holes that Ants can enter, `[R, C]` bool.

    Args:
        board: of the games.
        game: `[R]`, of the Ants.
        near: `[R, 6]`, the hexes around the Ants.
        entry: `[R, 6]` bool, which of them lie in such a region and can be entered.
        joined: of `bitboards.passages`.
    """
    start = bitboards.from_cells(near, entry, rows=board.own.shape[1])
    region = bitboards.flood(start, bitboards.spread, *(words[game] for words in joined))
    row = torch.arange(len(game), device=game.device)
    return bitboards.contains(region, row, board.empty[game]) & board.empty_mask[game]


def _add_spiders(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the moves of Spiders: exactly three slides, to no hex twice."""
    start = of_movers(movers, board.hex)
    occupied = windows.cut_out(board.occupied, movers.game, start)
    mark_window(moves, board, movers, windows.spider_ends(occupied & ~windows.CENTRE))


def _add_ladybugs(moves: Tensor, board: Board, movers: Movers) -> None:
    """Add the moves of Ladybugs: two steps on top of the hive, then one down to an empty hex."""
    start = of_movers(movers, board.hex)
    highest = int(board.level.max()) if can_read(board.level) else HIGHEST
    cut = [windows.cut_out(board.at_level(level), movers.game, start) for level in range(highest + 1)]
    mark_window(moves, board, movers, windows.ladybug_ends([each & ~windows.CENTRE for each in cut]))


def _add_throws(moves: Tensor, board: Board, movers: Movers, *, movable: Tensor) -> None:
    """Add the throws of Pillbugs: an adjacent single tile of either player to an adjacent empty hex.

    Args:
        moves: `[B, P, W]`.
        board: of the games.
        movers: Pillbugs, and Mosquitoes beside one, that may throw.
        movable: `[B, P]` bool, tiles that are uppermost, not pinned, and did not move in the previous ply.
    """
    near = around(board, movers.game, movers.slot)
    height, top = _near(board, movers)
    before, after = _beside(height)
    gate = (before > 1) & (after > 1)
    taken = (height == 1) & movable[movers.game.unsqueeze(-1), top] & ~gate
    given = (height == 0) & ~gate
    both = taken.unsqueeze(-1) & given.unsqueeze(-2) & movers.ready.view(-1, 1, 1)
    node = board.node[movers.game.unsqueeze(-1), near].long()
    node = torch.where(both, node.unsqueeze(-2), board.nodes)
    row = movers.game.unsqueeze(-1) * moves.shape[1] + top
    moves.view(-1).scatter_(0, (row.unsqueeze(-1) * moves.shape[2] + node).flatten(), True)
