"""Best responses against a solved board: a perfect player is called so, one planted mistake is found."""

from functools import cache

import pytest
import torch

from edgewise.envs.hex import dynamics
from edgewise.envs.hex.exact import perfection
from edgewise.envs.registry import make_env

NEAR = dynamics.NEIGHBOURS
WINNING_OPENINGS = {(0, 2), (1, 0), (1, 1), (1, 2), (2, 0)}


def joined(board, player):
    """Whether `player` has joined its sides of a board of side 3, by searching from one of them."""
    own = {divmod(cell, 3) for cell in range(9) if board[cell] == player + 1}
    found = {place for place in own if place[player] == 0}
    while True:
        more = {(r + d, c + e) for r, c in found for d, e in NEAR} & own - found
        if not more:
            return any(place[player] == 2 for place in found)
        found |= more


@cache
def best(board, player):
    """A winning cell for `player`, to move, or None."""
    for cell in range(9):
        if board[cell] == 0:
            after = (*board[:cell], player + 1, *board[cell + 1 :])
            if joined(after, player) or best(after, 1 - player) is None:
                return cell
    return None


def solver(mistakes=()):
    """Plays a winning cell if there is one, else the first free one; and that too where it should err."""

    def policy(root):
        moves = []
        for stones, player in zip(root["state", "stones"].tolist(), root["player"].tolist(), strict=True):
            board = tuple(stones[:9])
            cell = None if (board, player) in mistakes else best(board, player)
            moves.append(board.index(0) if cell is None else cell)
        return root.set("action", torch.tensor(moves))

    return policy


def test_a_solver_is_perfect_and_proves_the_known_openings():
    found = perfection(make_env("hex", size=3), solver(), size=3)
    assert found.perfect
    assert found.exploitability == 0
    openings = {divmod(cell, 3) for cell in found.proved_first.nonzero().flatten().tolist()}
    assert openings == WINNING_OPENINGS
    assert not (found.proved_first & found.proved_second).any()


def test_boards_with_room_to_spare_are_no_different():
    found = perfection(make_env("hex", size=(3, 5)), solver(), size=3)
    assert found.perfect


def test_one_planted_mistake_is_found():
    """The answer b1 to the corner a1 throws the second player's win away."""
    board = (1, 0, 0, 0, 0, 0, 0, 0, 0)
    after = (1, 2, 0, 0, 0, 0, 0, 0, 0)
    assert best(board, 1) != 1
    assert best(after, 0) is not None
    found = perfection(make_env("hex", size=3), solver({(board, 1)}), size=3)
    assert not found.perfect
    assert found.exploitability == pytest.approx(1 / 9)
    assert not found.proved_second[0]


def first_free(root):
    return root.set("action", root["action_mask"].long().argmax(-1))


def test_the_first_free_cell_is_no_good_policy():
    found = perfection(make_env("hex", size=3), first_free, size=3)
    assert not found.perfect
    assert found.exploitability > 0.5
