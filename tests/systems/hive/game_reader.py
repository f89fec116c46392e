"""Reads game strings of the Universal Hive Protocol, to check those that are written."""

import torch

from edgewise.systems.hive import dynamics
from edgewise.systems.hive.game_file import MOST_MOVES
from edgewise.systems.hive.notation import Hive, read_move
from edgewise.systems.hive.pieces import BASE_HAND, Hand


def read_type(text):
    base, _, expansions = text.partition("+")
    return Hand.of((BASE_HAND if base == "Base" else base) + expansions)


def read_game(text):
    """The hand, the moves, and the position after them."""
    kind, _, _, *moves = text.strip().split(";")
    hand = read_type(kind)
    position = dynamics.new_games(1, hand, max_moves=MOST_MOVES, window=32)
    for name in moves:
        move = read_move(name, Hive.of(position, hand))
        position = dynamics.advance(position, torch.tensor([move], dtype=torch.int16), hand)
    return hand, moves, position
