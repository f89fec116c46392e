"""The tiles of Hive: kinds, hands, and the sizes that follow from a hand. Never imports torch."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = "QSBGAMLP"
"""Queen, Spider, Beetle, Grasshopper, Ant, Mosquito, Ladybug, Pillbug, by their letters in UHP."""
QUEEN, SPIDER, BEETLE, GRASSHOPPER, ANT, MOSQUITO, LADYBUG, PILLBUG = range(8)
NAMES = ("queen", "spider", "beetle", "grasshopper", "ant", "mosquito", "ladybug", "pillbug")
BASE_HAND = "QSSBBGGGAAA"
EXPANSIONS = "MLP"
MOST_TILES = 14
"""Largest hand: two of them span at most 28 hexes, which fit on a board of 32 x 32 with a margin."""
HIGHEST = 6
"""Highest level of a tile: four beetles and two mosquitoes on one tile."""
DIRECTIONS = ((1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1))
"""Steps (q, r) to the neighbours of a hex in cyclic order: E, NE, NW, W, SW, SE."""


@dataclass(frozen=True)
class Hand:
    """The tiles that each player starts with; slot k of a player always holds the same tile.

    Args:
        kinds: kind of each slot, sorted; one queen, at least two tiles, at most `MOST_TILES`.

    Example:
        >>> Hand.of("QAAGB").size
        5
    """

    kinds: tuple[int, ...]

    @classmethod
    def of(cls, letters: str) -> Hand:
        """Build a hand from letters of `KINDS`, one per tile, in any order.

        Raises:
            ValueError: a letter is unknown, or the hand cannot be played.
        """
        foreign = sorted(set(letters) - set(KINDS))
        if foreign:
            raise ValueError(f"{foreign[0]!r} is no tile of Hive: tiles are {', '.join(KINDS)}")
        if letters.count("Q") != 1:
            raise ValueError(f"a hand has one queen, got {letters.count('Q')} in {letters!r}")
        if not 2 <= len(letters) <= MOST_TILES:
            raise ValueError(f"a hand has 2 to {MOST_TILES} tiles, got {len(letters)} in {letters!r}")
        for letter in EXPANSIONS:
            if letters.count(letter) > 1:
                raise ValueError(f"a hand has at most one {letter}, got {letters.count(letter)}")
        return cls(tuple(sorted(KINDS.index(letter) for letter in letters)))

    @property
    def letters(self) -> str:
        """The tiles as letters, in the order of their slots."""
        return "".join(KINDS[kind] for kind in self.kinds)

    @property
    def size(self) -> int:
        """Tiles per player, H."""
        return len(self.kinds)

    @property
    def tiles(self) -> int:
        """Tiles of both players, P = 2 H."""
        return 2 * len(self.kinds)

    @property
    def cells(self) -> int:
        """Most empty hexes that touch a hive of P tiles, C = 2 P + 4: one tile has 6, each other adds 2."""
        return 2 * self.tiles + 4

    @property
    def nodes(self) -> int:
        """Tiles and empty hexes, N = P + C."""
        return self.tiles + self.cells

    @property
    def queen(self) -> int:
        """Slot of a player's queen."""
        return self.kinds.index(QUEEN)

    def slots(self, *kinds: int) -> tuple[int, ...]:
        """Return the slots that hold one of `kinds`."""
        return tuple(slot for slot, kind in enumerate(self.kinds) if kind in kinds)

    def __contains__(self, kind: int) -> bool:
        return kind in self.kinds
