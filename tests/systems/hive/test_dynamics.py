"""The tensor rules: published counts, equality with the plain-Python rules, pins, ends, repetitions."""

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.hive import reference
from tests.systems.hive.compare import HANDS, compare_games, moves_of, tile_of
from tests.systems.hive.reference import AROUND, Game, beside

from edgewise.config.errors import ConfigError
from edgewise.envs.registry import make_env
from edgewise.systems.hive import bitboards, board, dynamics, movement, scenario
from edgewise.systems.hive.perft import perft
from edgewise.systems.hive.pieces import BASE_HAND, Hand

PERFT = {
    "": [4, 96, 1_440, 21_600, 516_240, 12_219_480],
    "M": [5, 150, 2_610, 45_414, 1_252_800, 34_233_432],
    "L": [5, 150, 2_610, 45_414, 1_252_800, 34_233_672],
    "P": [5, 150, 2_610, 45_414, 1_255_932, 34_395_984],
    "ML": [6, 216, 4_320, 86_400, 2_725_920, 85_201_200],
    "MP": [6, 216, 4_320, 86_400, 2_730_888, 85_492_248],
    "LP": [6, 216, 4_320, 86_400, 2_730_240, 85_457_136],
    "MLP": [7, 294, 6_678, 151_686, 5_427_108, 192_353_904],
}
"""Published sequences of 1 to 6 plies, by expansions."""


@pytest.mark.parametrize("expansions", PERFT)
def test_the_tensor_rules_reach_the_published_counts(expansions):
    assert perft(Hand.of(BASE_HAND + expansions), 4) == PERFT[expansions][:4]


@pytest.mark.parametrize("expansions", ["", "P"])
def test_they_do_one_ply_deeper(expansions):
    assert perft(Hand.of(BASE_HAND + expansions), 5) == PERFT[expansions][:5]


@pytest.mark.parametrize("expansions", PERFT)
def test_the_plain_rules_reach_the_published_counts(expansions):
    assert reference.perft(Game(BASE_HAND + expansions), 3) == PERFT[expansions][:3]


@pytest.mark.parametrize("letters", HANDS)
def test_random_games_are_the_same_in_both_engines(letters):
    compare_games(letters, games=2, plies=40, seed=len(letters))


def without_reading(monkeypatch):
    """Let the rules take the path of devices on which values cannot be read."""
    for module in (bitboards, board, dynamics, movement):
        monkeypatch.setattr(module, "can_read", lambda _: False)


@pytest.mark.parametrize("letters", ["QAAGB", "QBBMLPAA", BASE_HAND + "MLP"])
def test_both_paths_of_the_code_give_the_same_moves(letters, monkeypatch):
    hand = Hand.of(letters)
    games = dynamics.new_games(16, hand, max_moves=300, window=8)
    generator = torch.Generator().manual_seed(0)
    positions = []
    for _ in range(40):
        games = dynamics.advance(games, scenario.random_move(games["moves"], generator), hand)
        positions.append(games)
    every_third = {name: torch.cat([each[name] for each in positions[::3]]) for name in games}
    without_reading(monkeypatch)
    assert torch.equal(dynamics.list_moves(every_third, hand, max_moves=300), every_third["moves"])


@pytest.mark.parametrize("reading", [True, False])
def test_more_moves_than_fit_are_an_error_and_never_left_out(monkeypatch, reading):
    hand = Hand.of(BASE_HAND)
    games = dynamics.new_games(8, hand, max_moves=300, window=8)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        games = dynamics.advance(games, scenario.random_move(games["moves"], generator), hand)
    most = int((games["moves"][..., 0] >= 0).sum(-1).max())
    if not reading:
        without_reading(monkeypatch)
    assert torch.equal(dynamics.list_moves(games, hand, max_moves=most), games["moves"][:, :most])
    with pytest.raises((OverflowError, RuntimeError), match="moves"):
        dynamics.list_moves(games, hand, max_moves=most - 1)


def test_an_environment_names_the_setting_that_is_too_small():
    env = make_env("hive", max_moves=5, num_envs=4, seed=0)
    with pytest.raises(ConfigError, match=r"max_moves: a position has \d+ legal moves, but the list holds 5"):
        env.rollout(3, auto_reset=True)


def hive_of(places):
    """One board with a tile on each place."""
    q = torch.tensor([[place[0] for place in places]])
    r = torch.tensor([[place[1] for place in places]])
    return board.build_board(q, r, torch.zeros_like(q))


def pins_of(places):
    hive = hive_of(places)
    air = bitboards.open_air(bitboards.passages(hive.occupied))
    return board.pinned(hive, air, torch.ones_like(hive.top))


def expected_pins(places):
    game = Game("Q")
    game.stacks = {place: [("w", "Q", 1)] for place in places}
    return [not game.holds_together(place) for place in places]


def grown(count, seed):
    """A random connected set of hexes; rings are frequent, since hexes with few neighbours are preferred."""
    chance = random.Random(seed)
    places = [(0, 0)]
    while len(places) < count:
        free = sorted({near for place in places for near in beside(place)} - set(places))
        weight = [4.0 ** -sum(near in places for near in beside(place)) for place in free]
        places.append(chance.choices(free, weight)[0])
    return places


@given(st.integers(1, 28), st.integers(0, 2**31))
def test_pinned_tiles_are_those_that_split_the_hive(count, seed):
    places = grown(count, seed)
    assert pins_of(places)[0].tolist() == expected_pins(places)


def test_a_tile_inside_a_hole_can_be_pinned(monkeypatch):
    """A ring of radius 2, and two tiles that reach into its hole: both gaps of the first lie in the hole."""
    ring = [(q, r) for q in range(-2, 3) for r in range(-2, 3) if max(abs(q), abs(r), abs(q + r)) == 2]
    places = [*ring, (1, 0), (0, 0)]
    pins = expected_pins(places)
    assert pins == [False] * 12 + [True, False]
    assert pins_of(places)[0].tolist() == pins
    without_reading(monkeypatch)
    assert pins_of(places)[0].tolist() == pins


@given(st.integers(1, 28), st.integers(0, 2**31))
def test_the_empty_hexes_are_those_that_touch_the_hive(count, seed):
    places = grown(count, seed)
    found = hive_of(places)
    touching = {near for place in places for near in beside(place)} - set(places)
    hexes = found.empty[found.empty_mask].tolist()
    listed = [(number % 32 + int(found.left), number // 32 + int(found.upper)) for number in hexes]
    assert len(listed) == len(set(listed))
    assert set(listed) == touching


def position_of(hand, placed, *, player=0, plies=20, last=-1):
    """A position with tiles `{slot: (q, r, level)}`."""
    games = dynamics.new_games(1, hand, max_moves=300, window=8)
    for slot, values in placed.items():
        for name, value in zip(("q", "r", "level"), values, strict=True):
            games[name][0, slot] = value
    games |= {
        "player": torch.tensor([player]),
        "plies": torch.tensor([plies + player]),
        "last": torch.tensor([last]),
    }
    return {**games, "moves": dynamics.list_moves(games, hand, max_moves=300)}


def arranged(letters, count, seed):
    """One position in both engines: `count` tiles on a hive with many rings, and climbers on some."""
    hand, chance = Hand.of(letters), random.Random(seed)
    places = grown(count, seed)
    slots = list(dict.fromkeys([0, hand.size, *chance.sample(range(hand.tiles), hand.tiles)]))
    climbers = [slot for slot in slots[count:] if tile_of(slot, hand)[1] in "BM"]
    slots = slots[:count] + climbers[: chance.randrange(5)]
    # Of equal tiles, the first is placed first.
    kinds = [tile_of(slot, hand)[:2] for slot in range(hand.tiles)]
    taken = [kinds[slot] for slot in slots]
    slots = [kinds.index(kind) + taken[:place].count(kind) for place, kind in enumerate(taken)]
    game = Game(hand.letters)
    game.plies, placed = 20, {}
    for number, slot in enumerate(slots):
        place = places[number] if number < count else chance.choice(places)
        stack = game.stacks.setdefault(place, [])
        placed[slot] = (*place, len(stack))
        stack.append(tile_of(slot, hand))
        game.hands[tile_of(slot, hand)[0]].remove(tile_of(slot, hand))
    return position_of(hand, placed), game, hand


@given(st.integers(3, 24), st.integers(0, 2**31))
def test_hives_with_holes_and_gates_have_the_moves_of_the_plain_rules(count, seed):
    position, game, hand = arranged(BASE_HAND + "MLP", count, seed)
    assert set(moves_of(position["moves"][0], hand)) == game.moves()


def test_an_ant_in_a_hole_stays_in_it():
    """A closed ring of radius 2 around seven hexes, in which an Ant stands."""
    hand = Hand.of("QGGGGGGAAA")
    ring = [(q, r) for q in range(-2, 3) for r in range(-2, 3) if max(abs(q), abs(r), abs(q + r)) == 2]
    slots = [0, 10, *range(1, 7), *range(11, 15)]
    placed = {slot: (*place, 0) for slot, place in zip(slots, ring, strict=True)}
    position = position_of(hand, {**placed, 7: (1, 0, 0)})
    ends = {place for tile, place in moves_of(position["moves"][0], hand) if tile == ("w", "A", 1)}
    assert ends == {(0, -1), (-1, 0), (-1, 1), (0, 1), (1, -1)}


@pytest.mark.parametrize("direction", range(6))
@pytest.mark.parametrize("closed", [True, False])
def test_a_ladybug_does_not_pass_between_two_stacks(direction, closed):
    """The tile ahead is single; the two tiles beside the way carry a Beetle each, or only one of them does.

    Three hexes ahead is reached over the tile ahead and the one behind it alone.
    """
    hand = Hand.of("QBBL")
    ahead, left, right = (AROUND[(direction + turn) % 6] for turn in (0, 1, 5))
    twice, thrice = ((times * ahead[0], times * ahead[1]) for times in (2, 3))
    ground = {3: (0, 0), 0: ahead, 4: left, 5: right, 6: twice}
    placed = {slot: (*place, 0) for slot, place in ground.items()} | {1: (*left, 1)}
    if closed:
        placed[2] = (*right, 1)
    moves = moves_of(position_of(hand, placed)["moves"][0], hand)
    ends = {place for tile, place in moves if tile == ("w", "L", 1)}
    assert ends
    assert (thrice in ends) == (not closed)


def test_a_ladybug_stays_on_the_hive_for_two_steps_and_ends_elsewhere():
    """Ends beside a line of three tiles; a step down too early, or over its own hex, would lead to others."""
    hand = Hand.of("QAL")
    placed = {2: (0, 0, 0), 0: (1, 0, 0), 3: (2, 0, 0), 1: (3, 0, 0)}
    moves = moves_of(position_of(hand, placed)["moves"][0], hand)
    ends = {place for tile, place in moves if tile == ("w", "L", 1)}
    assert ends == {(2, -1), (3, -1), (1, 1), (2, 1)}


def test_a_surrounded_queen_loses_and_two_are_a_draw():
    hand = Hand.of("QSSBBGGGAAA")
    ring = {slot: (*AROUND[slot - 1], 0) for slot in range(1, 7)}
    lost = position_of(hand, {0: (0, 0, 0), **ring, 11: (5, 0, 0)})
    assert dynamics.surrounded(lost, hand).tolist() == [[True, False]]
    assert dynamics.result(lost, hand, player=torch.tensor([0])).item() == -1
    assert dynamics.result(lost, hand, player=torch.tensor([1])).item() == 1
    # The two queens touch; eight tiles surround both.
    both = sorted({*beside((0, 0)), *beside((1, 0))} - {(0, 0), (1, 0)})
    tiles = {slot: (*place, 0) for slot, place in enumerate(both, start=1)}
    drawn = position_of(hand, {0: (0, 0, 0), 11: (1, 0, 0), **tiles})
    assert dynamics.surrounded(drawn, hand).tolist() == [[True, True]]
    assert dynamics.result(drawn, hand, player=torch.tensor([0])).item() == 0
    assert dynamics.is_over(drawn, hand).all()


def test_a_player_without_moves_passes():
    """Black has only its queen, pinned between white's tiles, and no place for a tile: hand is empty."""
    hand = Hand.of("QA")
    placed = {0: (0, 0, 0), 2: (1, 0, 0), 1: (2, 0, 0), 3: (1, 1, 0)}
    black = position_of(hand, placed, player=1, last=3)
    slots = {tile_of(int(slot), hand) for slot in black["moves"][0, :, 0] if 0 <= slot < 4}
    assert ("b", "Q", 1) not in slots
    assert black["moves"][0, 0].tolist()[0] == 4
    after = dynamics.advance(black, black["moves"][:, 0], hand)
    assert after["player"].tolist() == [0]
    assert torch.equal(after["q"], black["q"])
    assert after["last"].tolist() == [-1]


def test_a_position_that_occurs_three_times_is_a_draw():
    hand = Hand.of("QA")
    placed = {0: (0, 0, 0), 2: (1, 0, 0), 1: (-1, 0, 0), 3: (2, 0, 0)}
    games = position_of(hand, placed)
    there, back = (1, -1, 1), (1, -1, 0)
    other, home = (3, 2, -1), (3, 2, 0)
    counts = []
    for move in (there, other, back, home, there, other, back, home, there):
        assert list(move) in games["moves"][0].tolist()
        games = dynamics.advance(games, torch.tensor([move], dtype=torch.int16), hand)
        counts.append(int(dynamics.repetitions(games)))
    # The position before the first ply is not in the history of this game, which begins here.
    assert counts == [1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert not dynamics.is_over(games, hand).any()


def test_a_thrown_tile_rests_for_one_ply():
    hand = Hand.of("QAP")
    placed = {0: (0, 0, 0), 2: (1, 0, 0), 3: (-1, 0, 0), 4: (2, 0, 0)}
    games = position_of(hand, placed)
    throws = [move for move in moves_of(games["moves"][0], hand) if move[0] == ("b", "A", 1)]
    assert throws
    row = games["moves"][0].tolist().index([4, *throws[0][1]])
    after = dynamics.advance(games, games["moves"][:, row], hand)
    assert after["last"].tolist() == [4]
    assert all(move[0] != ("b", "A", 1) for move in moves_of(after["moves"][0], hand))


@pytest.mark.parametrize("letters", ["A", "QQ", "QX", "QMM", "Q", "QSSBBGGGAAAMLPA"])
def test_hands_that_cannot_be_played_are_refused(letters):
    with pytest.raises(ValueError, match=r"tile|queen|hand"):
        Hand.of(letters)
