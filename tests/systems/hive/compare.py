"""Compare the tensor rules with the plain-Python rules, and with OpenSpiel where it is installed.

    python -m tests.systems.hive.compare --positions 50000 [--open-spiel] [--seed N]

Random games of all variants and of reduced hands are played by both engines. In every position the legal
moves, the ends and the repetitions must be equal; the first difference is an error. Against OpenSpiel,
positions that differ only by moves of a pinned tile are counted apart: OpenSpiel 2.0.2 lists them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from itertools import product

import torch
from tests.systems.hive.reference import PASS, Game

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.pieces import BASE_HAND, Hand

VARIANTS = [BASE_HAND + "".join(letters) for letters in product(*(("", each) for each in "MLP"))]
REDUCED = ["QAAGB", "QAB", "QSSBBM", "QGGP", "QBBMLP", "QAASMP", "QBBBMLPAA"]
HANDS = (*VARIANTS, *REDUCED)
PLIES = (40, 120, 260)
"""Games are cut after one of these numbers of plies."""


def tile_of(slot, hand):
    """The plain-Python name of a slot."""
    letters, place = hand.letters, slot % hand.size
    return "wb"[slot // hand.size], letters[place], letters[: place + 1].count(letters[place])


def moves_of(listed, hand):
    """The set of plain-Python moves of one game's list of moves, and the list itself."""
    found = [
        PASS if slot == hand.tiles else (tile_of(slot, hand), (q, r))
        for slot, q, r in listed.tolist()
        if slot >= 0
    ]
    assert len(found) == len(set(found)), "a move is listed twice"
    return found


def compare_games(letters, *, games, plies, seed, check=None):
    """Play random games in both engines and return how many positions were compared.

    `check(game, moves)` is called with the plain-Python game and its legal moves in every position.
    """
    hand, chance = Hand.of(letters), random.Random(seed)
    position = dynamics.new_games(games, hand, max_moves=512, window=32)
    others = [Game(hand.letters) for _ in range(games)]
    compared = 0
    for _ in range(plies):
        chosen = []
        for game, listed in zip(others, position["moves"], strict=True):
            found, expected = moves_of(listed, hand), game.moves()
            if set(found) != expected:
                raise AssertionError(
                    f"{letters}, ply {game.plies}: {describe(game)}: only tensors have "
                    f"{sorted(set(found) - expected)}, only plain Python has {sorted(expected - set(found))}"
                )
            if check is not None:
                check(game, expected)
            chosen.append(chance.randrange(len(found)))
        compared += len(others)
        rows = torch.arange(len(others))
        position = dynamics.advance(position, position["moves"][rows, torch.tensor(chosen)], hand)
        compare_ends(position, others, chosen_moves(others, position, hand), hand)
        alive = [row for row, game in enumerate(others) if not game.is_over()]
        if len(alive) < len(others):
            others = [others[row] for row in alive]
            position = {name: value[alive] for name, value in position.items()}
        if not others:
            break
    return compared


def chosen_moves(others, position, hand):
    """The moves that led to `position`, read from the tiles that moved last."""
    found = []
    for row in range(len(others)):
        slot = int(position["last"][row])
        place = (int(position["q"][row, slot]), int(position["r"][row, slot]))
        found.append(PASS if slot < 0 else (tile_of(slot, hand), place))
    return found


def compare_ends(position, others, moves, hand):
    """Play the moves in plain Python and compare ends and repetitions."""
    surrounded = dynamics.surrounded(position, hand).tolist()
    repeated = dynamics.repetitions(position).tolist()
    for row, (game, move) in enumerate(zip(others, moves, strict=True)):
        game.play(move)
        lost = {"wb"[player] for player in (0, 1) if surrounded[row][player]}
        assert lost == game.losers(), f"surrounded queens differ: {describe(game)}"
        assert repeated[row] == game.repetitions(), f"repetitions differ: {describe(game)}"


def describe(game):
    """The hive as text, for messages."""
    stacks = {place: ["".join(map(str, tile)) for tile in stack] for place, stack in game.stacks.items()}
    return f"{game.mover} to move, last {game.last}, {stacks}"


class OpenSpiel:
    """Follows one plain-Python game in OpenSpiel and compares the moves."""

    def __init__(self, letters):
        import pyspiel

        names = {"M": "uses_mosquito", "L": "uses_ladybug", "P": "uses_pillbug"}
        options = {name: letter in letters for letter, name in names.items()}
        game = pyspiel.load_game("hive", {**options, "board_size": 20})
        self.state = game.new_initial_state()
        self.equal = self.pinned = self.other = 0

    def moves(self, game):
        """OpenSpiel's moves as plain-Python moves, with an action each; equal tiles in hand count once."""
        where = {tile: place for place, stack in game.stacks.items() for tile in stack}
        held = {}
        for tile in game.hands[game.mover]:
            held[tile[1]] = min(held.get(tile[1], tile), tile, key=lambda each: each[2])
        found = {}
        for action in self.state.legal_actions():
            text = self.state.action_to_string(action)
            if text == "pass":
                found[PASS] = action
                continue
            name, *rest = text.split()
            named = read_tile(name)
            tile = named if named in where else held[named[1]]
            move = (tile, read_place(rest[0] if rest else None, where))
            if named == tile or move not in found:
                found[move] = action
        return found

    def compare(self, game, expected):
        """Count the position by how the moves differ; return OpenSpiel's moves."""
        found = self.moves(game)
        extra, missing = set(found) - expected, expected - set(found)
        if not extra and not missing:
            self.equal += 1
        elif not missing and all(is_pinned(game, tile) for tile, _ in extra):
            self.pinned += 1
        else:
            self.other += 1
        return found


def is_pinned(game, tile):
    place = next((at for at, stack in game.stacks.items() if stack == [tile]), None)
    return place is not None and not game.holds_together(place)


def read_tile(name):
    return name[0], name[1], int(name[2:] or 1)


def read_place(text, where):
    """The hex that a UHP destination names."""
    if text is None:
        return (0, 0)
    signs = {"-": ((-1, 0), (1, 0)), "/": ((-1, 1), (1, -1)), "\\": ((0, -1), (0, 1))}
    for sign, (before, after) in signs.items():
        if text.startswith(sign) or text.endswith(sign):
            q, r = where[read_tile(text.strip(sign))]
            step = before if text.startswith(sign) else after
            return (q + step[0], r + step[1])
    return where[read_tile(text)]


def compare_open_spiel(letters, *, plies, seed):
    """Play one random game in plain Python and OpenSpiel; return positions by outcome of the comparison.

    Plain Python and tensors are compared apart, so this compares OpenSpiel with both.
    """
    hand, chance = Hand.of(letters), random.Random(seed)
    game, other = Game(hand.letters), OpenSpiel(letters)
    for _ in range(plies):
        if other.state.is_terminal() or game.losers():
            assert other.state.is_terminal() == bool(game.losers()) or game.repetitions() >= 3
            break
        expected = game.moves()
        found = other.compare(game, expected)
        both = sorted(set(found) & expected, key=str)
        move = chance.choice(both)
        if move != PASS and move[0] in game.hands[game.mover]:
            placed = other.state.action_to_string(found[move]).split()[0]
            assert read_tile(placed) == move[0], f"OpenSpiel cannot place {move[0]}"
        other.state.apply_action(found[move])
        game.play(move)
    return other.equal, other.pinned, other.other


def note(text):
    sys.stderr.write(f"{text}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--open-spiel", action="store_true", help="also compare as many with OpenSpiel")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compared, seed = dict.fromkeys(HANDS, 0), options.seed
    while sum(compared.values()) < options.positions:
        letters = min(compared, key=compared.get)
        compared[letters] += compare_games(letters, games=8, plies=PLIES[seed % 3], seed=seed)
        seed += 1
        note(f"{sum(compared.values()):,} positions equal in both engines")
    result = {"positions": sum(compared.values()), "by_hand": compared, "differences": 0}
    if options.open_spiel:
        totals = {"equal": 0, "only_pinned_tiles_differ": 0, "other": 0}
        while sum(totals.values()) < options.positions:
            letters = VARIANTS[seed % len(VARIANTS)]
            counts = compare_open_spiel(letters, plies=PLIES[seed % 3], seed=seed)
            totals = {name: totals[name] + count for name, count in zip(totals, counts, strict=True)}
            seed += 1
            note(f"OpenSpiel: {totals}")
        result["open_spiel"] = totals
    print(json.dumps(result, indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
