"""Moves as text: round trips over random games, and errors that say what is wrong."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.config.errors import DataError
from edgewise.systems.hive import dynamics, scenario
from edgewise.systems.hive.notation import Hive, read_move, read_tile, write_move, write_tile
from edgewise.systems.hive.pieces import BASE_HAND, Hand

HAND = Hand.of(BASE_HAND + "MLP")


def games_after(plies, *, seed=0, hand=HAND):
    games = dynamics.new_games(2, hand, max_moves=400, window=8)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(plies):
        games = dynamics.advance(games, scenario.random_move(games["moves"], generator), hand)
    return games


def play(*moves, hand=HAND):
    """The game after moves in notation."""
    games = dynamics.new_games(1, hand, max_moves=400, window=8)
    for text in moves:
        move = read_move(text, Hive.of(games, hand))
        games = dynamics.advance(games, torch.tensor([move], dtype=torch.int16), hand)
    return Hive.of(games, hand)


@settings(max_examples=8)
@given(st.integers(0, 40), st.integers(0, 1000))
def test_every_legal_move_is_read_back(plies, seed):
    games = games_after(plies, seed=seed)
    for game in range(2):
        hive = Hive.of(games, HAND, game=game)
        texts = [write_move(move, hive) for move in hive.moves]
        assert len(set(texts)) == len(texts)
        assert [read_move(text, hive) for text in texts] == hive.moves


def test_tiles_are_named_as_in_uhp():
    assert [write_tile(slot, HAND) for slot in (0, 1, 2, 8, 11, 14, 27)] == [
        "wQ",
        "wS1",
        "wS2",
        "wA1",
        "wM",
        "bQ",
        "bP",
    ]
    assert all(read_tile(write_tile(slot, HAND), HAND) == slot for slot in range(HAND.tiles))


@pytest.mark.parametrize(
    "text, place",
    [
        ("bA1 wA1-", (1, 0)),
        ("bA1 wA1/", (1, -1)),
        ("bA1 \\wA1", (0, -1)),
        ("bA1 -wA1", (-1, 0)),
        ("bA1 /wA1", (-1, 1)),
        ("bA1 wA1\\", (0, 1)),
    ],
)
def test_signs_are_the_sides_of_a_hex(text, place):
    hive = play("wA1")
    assert read_move(text, hive)[1:] == place
    assert write_move(read_move(text, hive), hive) == text


def test_a_beetle_goes_on_top():
    before = ("wS1", "bS1 wS1-", "wQ -wS1", "bQ bS1-", "wB1 \\wQ", "bA1 bQ-")
    assert read_move("wB1 wQ", play(*before))[1:] == (-1, 0)
    covered = play(*before, "wB1 wQ")
    assert covered.stacks[(-1, 0)] == [read_tile("wQ", HAND), read_tile("wB1", HAND)]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is no move"),
        ("wA1 bQ- wQ", "is no move"),
        ("wZ1 wS1-", "'wZ1' is no tile"),
        ("wA4 wS1-", "'wA4' is no tile"),
        ("wQ1 wS1-", "'wQ1' is no tile"),
        ("wA1", "has no destination"),
        ("wA1 -wS1-", "is no destination"),
        ("wA1 -", "is no destination"),
        ("wA1 wS1+", "is no destination"),
        ("wA1 wG3-", "wG3 is not on the board"),
        ("wA1 bS1-", "is not legal here"),
        ("bA1 bS1-", "is not legal here"),
        ("pass", "a pass is legal only without another move"),
    ],
)
def test_a_malformed_or_illegal_move_says_what_is_wrong(text, message):
    hive = play("wS1", "bS1 wS1-")
    with pytest.raises(DataError, match=message):
        read_move(text, hive)


def test_an_illegal_move_names_the_legal_ones():
    with pytest.raises(DataError) as caught:
        read_move("wA1 bS1-", play("wS1", "bS1 wS1-"))
    assert "wA1 -wS1" in caught.value.hint


def test_a_pass_is_read_where_it_is_legal():
    hand = Hand.of("QA")
    hive = Hive(hand, {(0, 0): [0]}, [(hand.tiles, -1, -1)])
    assert write_move(read_move("pass", hive), hive) == "pass"
