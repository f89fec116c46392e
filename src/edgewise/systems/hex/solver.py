"""Exact solver for small boards: memoised search over bitboards."""

from __future__ import annotations

import torch
from torch import Tensor

from edgewise.systems.hex import dynamics

LARGEST_SOLVED = 4
"""Largest solvable side, limited by the table of all sets of cells and the search time."""


class Solver:
    """Solver for boards of one side.

    A set of cells is an integer whose bit k is set if cell k is in the set.

    Args:
        size: cells along a side, 4 at most.

    Example:
        >>> solver = Solver(3)
        >>> [cell for cell in range(9) if not solver.wins(0, 1 << cell, player=1)]
        [2, 3, 4, 5, 6]
    """

    def __init__(self, size: int) -> None:
        if not 2 <= size <= LARGEST_SOLVED:
            raise ValueError(f"the solver takes boards from 2 to {LARGEST_SOLVED}, got {size}")
        self.size, self.cells = size, size * size
        self._joined = tuple(_joined(size, player) for player in (0, 1))
        self._known: tuple[dict[int, bool], dict[int, bool]] = ({}, {})
        middle = (size - 1) / 2
        places = sorted(range(self.cells), key=lambda k: abs(k // size - middle) + abs(k % size - middle))
        self._order = tuple(1 << cell for cell in places)

    def wins(self, mine: int, theirs: int, *, player: int) -> bool:
        """Return whether `player`, to move and owning the cells `mine`, wins with perfect play."""
        known, key = self._known[player], mine << self.cells | theirs
        found = known.get(key)
        if found is None:
            found = known[key] = self._search(mine, theirs, player)
        return found

    def _search(self, mine: int, theirs: int, player: int) -> bool:
        """Solve a new position: win at once, else answer a threat, else try every cell."""
        joined, other_joined = self._joined[player], self._joined[1 - player]
        free = [bit for bit in self._order if not (mine | theirs) & bit]
        if any(joined[mine | bit] for bit in free):
            return True
        threats = [bit for bit in free if other_joined[theirs | bit]]
        if len(threats) > 1:
            return False
        return any(not self.wins(theirs, mine | bit, player=1 - player) for bit in threats or free)

    def mover_wins(self, stones: Tensor, *, player: Tensor) -> Tensor:
        """Return whether the player to move wins each position with perfect play, `[B]` bool.

        Args:
            stones: `[B, N]` int8 of undecided games, the cells first.
            player: `[B]` int64, the player to move.
        """
        bits = 1 << torch.arange(self.cells, device=stones.device)
        sets = [
            ((stones[:, : self.cells] == colour) * bits).sum(-1).tolist()
            for colour in (dynamics.FIRST, dynamics.SECOND)
        ]
        movers = player.tolist()
        found = [
            self.wins(both[mover], both[1 - mover], player=mover)
            for mover, *both in zip(movers, *sets, strict=True)
        ]
        return torch.tensor(found, dtype=torch.bool, device=stones.device)


def _joined(size: int, player: int) -> list[bool]:
    """Return for each set of cells whether it connects the two sides of `player`."""
    cells = size * size
    sets = torch.arange(1 << cells)
    own = (sets.unsqueeze(-1) >> torch.arange(cells) & 1).bool()
    borders = torch.zeros(len(sets), 4, dtype=torch.bool)
    borders[:, 2 * player : 2 * player + 2] = True
    near = dynamics.neighbour_table(size, size).expand(len(sets), -1, -1)
    whose = torch.full((len(sets),), player)
    return dynamics.connects(torch.cat((own, borders), -1), near, player=whose).tolist()
