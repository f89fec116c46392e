"""Hive in plain Python, one game at a time: dictionaries and searches, written apart from the tensor rules.

A tile is `(colour, kind, number)`, such as `("w", "A", 1)`; the board maps hexes (q, r) to stacks of tiles,
the lowest first. A move is `(tile, hex)`, or `PASS`.
"""

from __future__ import annotations

from collections import deque

AROUND = [(1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1)]
PASS = ("pass", None)


def beside(place):
    return [(place[0] + q, place[1] + r) for q, r in AROUND]


def common(one, two):
    """The two hexes that touch both of two adjacent hexes."""
    return [place for place in beside(one) if place in beside(two)]


class Game:
    """One game; `hand` is a string of kinds such as `QSSBBGGGAAA`, and `window` counts repetitions."""

    def __init__(self, hand, window=32):
        self.hand, self.window = hand, window
        self.stacks = {}
        self.hands = {colour: self._full_hand(colour) for colour in "wb"}
        self.plies, self.last = 0, None
        self.seen = []

    def _full_hand(self, colour):
        return [(colour, kind, self.hand[:place].count(kind) + 1) for place, kind in enumerate(self.hand)]

    def copy(self):
        other = Game.__new__(Game)
        other.hand, other.window = self.hand, self.window
        other.stacks = {place: list(stack) for place, stack in self.stacks.items()}
        other.hands = {colour: list(tiles) for colour, tiles in self.hands.items()}
        other.plies, other.last, other.seen = self.plies, self.last, list(self.seen)
        return other

    @property
    def mover(self):
        return "wb"[self.plies % 2]

    def height(self, place, lifted=None):
        return len(self.stacks.get(place, ())) - (place == lifted)

    def moves(self):
        """All legal moves, as a set; a pass only if there is no other."""
        found = self.placements()
        if not any(tile[1] == "Q" for tile in self.hands[self.mover]):
            found |= self.movements()
        return found or {PASS}

    def placements(self):
        turn, held = self.plies // 2, self.hands[self.mover]
        usable = {}
        for tile in held:
            if tile[1] not in usable or tile[2] < usable[tile[1]][2]:
                usable[tile[1]] = tile
        if turn == 0:
            usable.pop("Q", None)
        if turn >= 3 and "Q" in usable:
            usable = {"Q": usable["Q"]}
        return {(tile, place) for tile in usable.values() for place in self.free_places()}

    def free_places(self):
        if self.plies == 0:
            return {(0, 0)}
        open_places = {near for place in self.stacks for near in beside(place) if near not in self.stacks}
        if self.plies == 1:
            return open_places
        return {place for place in open_places if self._colours_around(place) == {self.mover}}

    def _colours_around(self, place):
        return {self.stacks[near][-1][0] for near in beside(place) if near in self.stacks}

    def holds_together(self, place):
        """Whether the hive stays in one piece when the only tile at `place` is taken away."""
        rest = set(self.stacks) - {place}
        if not rest:
            return True
        start = next(iter(rest))
        reached, waiting = {start}, deque([start])
        while waiting:
            for near in beside(waiting.popleft()):
                if near in rest and near not in reached:
                    reached.add(near)
                    waiting.append(near)
        return reached == rest

    def movements(self):
        found = set()
        for place, stack in self.stacks.items():
            tile = stack[-1]
            if tile == self.last or tile[0] != self.mover:
                continue
            if len(stack) > 1 or self.holds_together(place):
                for kind in self.ways(place):
                    found |= {(tile, end) for end in self.ends(kind, place) if end != place}
            if len(stack) == 1 and "P" in self.ways(place):
                found |= self.throws(place)
        return found

    def ways(self, place):
        """The kinds that the uppermost tile at `place` moves like."""
        stack = self.stacks[place]
        if stack[-1][1] != "M":
            return {stack[-1][1]}
        if len(stack) > 1:
            return {"B"}
        return {self.stacks[near][-1][1] for near in beside(place) if near in self.stacks} - {"M"}

    def ends(self, kind, place):
        if kind in "QP":
            return set(self.slides(place, place))
        if kind == "B":
            return {near for near in beside(place) if self.can_step(place, near, lifted=place)}
        if kind == "G":
            return self.jumps(place)
        if kind == "A":
            reached, waiting = {place}, [place]
            while waiting:
                for near in self.slides(waiting.pop(), place):
                    if near not in reached:
                        reached.add(near)
                        waiting.append(near)
            return reached
        if kind == "S":
            paths = [[place]]
            for _ in range(3):
                paths = [
                    [*path, near]
                    for path in paths
                    for near in self.slides(path[-1], place)
                    if near not in path
                ]
            return {path[-1] for path in paths}
        assert kind == "L"
        return self.ladybug(place)

    def slides(self, at, lifted):
        """Hexes that a tile from `lifted`, now at `at` on the ground, can slide to."""
        found = []
        for near in beside(at):
            if self.height(near, lifted) == 0 and near != at:
                walls = [self.height(wall, lifted) > 0 for wall in common(at, near)]
                if sum(walls) == 1:
                    found.append(near)
        return found

    def can_step(self, start, end, lifted):
        """Whether a tile on top of what is at `start` can step on top of what is at `end`."""
        low, high = self.height(start, lifted), self.height(end, lifted)
        if low == 0 and high == 0:
            return end in self.slides(start, lifted)
        walls = [self.height(wall, lifted) for wall in common(start, end)]
        return min(walls) <= max(low, high)

    def jumps(self, place):
        found = set()
        for q, r in AROUND:
            end, length = (place[0] + q, place[1] + r), 0
            while end in self.stacks:
                end, length = (end[0] + q, end[1] + r), length + 1
            if length:
                found.add(end)
        return found

    def ladybug(self, place):
        found = set()
        for first in beside(place):
            if not self.height(first, place) or not self.can_step(place, first, place):
                continue
            for second in beside(first):
                if not self.height(second, place) or not self.can_step(first, second, place):
                    continue
                for end in beside(second):
                    if self.height(end, place) == 0 and end != place and self.can_step(second, end, place):
                        found.add(end)
        return found

    def throws(self, place):
        found = set()

        def gated(near):
            return all(self.height(wall) > 1 for wall in common(place, near))

        for source in beside(place):
            stack = self.stacks.get(source, [])
            if len(stack) != 1 or stack[0] == self.last or gated(source) or not self.holds_together(source):
                continue
            found |= {(stack[0], end) for end in beside(place) if end not in self.stacks and not gated(end)}
        return found

    def play(self, move):
        tile, place = move
        if move == PASS:
            self.last = None
        else:
            source = next((at for at, stack in self.stacks.items() if stack[-1] == tile), None)
            if source is None:
                self.hands[tile[0]].remove(tile)
            else:
                self.stacks[source].pop()
                if not self.stacks[source]:
                    del self.stacks[source]
            self.stacks.setdefault(place, []).append(tile)
            self.last = tile
        self.plies += 1
        self.seen.append(self.arrangement())

    def arrangement(self):
        stacks = {place: tuple(tile[:2] for tile in stack) for place, stack in self.stacks.items()}
        return self.mover, frozenset(stacks.items())

    def repetitions(self):
        """How often the position has occurred in the last `window` plies, this one included."""
        latest = self.seen[-self.window :]
        return latest.count(latest[-1]) if latest else 1

    def losers(self):
        """The players whose queens are surrounded."""
        found = set()
        for place, stack in self.stacks.items():
            for tile in stack:
                if tile[1] == "Q" and all(near in self.stacks for near in beside(place)):
                    found.add(tile[0])
        return found

    def is_over(self):
        return bool(self.losers()) or self.repetitions() >= 3


def perft(game, depth):
    """The number of sequences of 1, 2, ... `depth` plies."""
    counts = [0] * depth

    def visit(position, left):
        if position.losers():
            return
        moves = position.moves()
        counts[depth - left] += len(moves)
        if left > 1:
            for move in moves:
                after = position.copy()
                after.play(move)
                visit(after, left - 1)

    visit(game, depth)
    return counts
