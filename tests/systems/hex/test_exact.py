"""Best responses against a solved board: a perfect player is called so, one planted mistake is found."""

from functools import cache

import pytest
import torch

from edgewise.envs.registry import make_env
from edgewise.systems.hex import dynamics
from edgewise.systems.hex.baselines import shortest_way
from edgewise.systems.hex.exact import (
    best_response,
    exploitability,
    opening_positions,
    wins_all_replies,
)
from edgewise.systems.hex.solver import Solver

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
    found = best_response(make_env("hex", size=3), solver(), size=3)
    assert found.perfect
    assert found.exploitability == 0
    openings = {divmod(cell, 3) for cell in found.wins_first.nonzero().flatten().tolist()}
    assert openings == WINNING_OPENINGS
    assert not (found.wins_first & found.wins_second).any()


def test_boards_with_room_to_spare_are_no_different():
    found = best_response(make_env("hex", size=(3, 5)), solver(), size=3)
    assert found.perfect


def test_one_planted_mistake_is_found():
    """The answer b1 to the corner a1 throws the second player's win away."""
    board = (1, 0, 0, 0, 0, 0, 0, 0, 0)
    after = (1, 2, 0, 0, 0, 0, 0, 0, 0)
    assert best(board, 1) != 1
    assert best(after, 0) is not None
    found = best_response(make_env("hex", size=3), solver({(board, 1)}), size=3)
    assert not found.perfect
    assert found.exploitability == pytest.approx(1 / 9)
    assert not found.wins_second[0]


def first_free(root):
    return root.set("action", root["action_mask"].long().argmax(-1))


def test_the_first_free_cell_is_no_good_policy():
    found = best_response(make_env("hex", size=3), first_free, size=3)
    assert not found.perfect
    assert found.exploitability > 0.5


OPENINGS = {2: {(0, 1), (1, 0)}, 3: WINNING_OPENINGS, 4: {(0, 3), (1, 2), (2, 1), (3, 0)}}


@pytest.fixture(scope="module")
def solver_of_four():
    return Solver(4)


@pytest.mark.parametrize("size", sorted(OPENINGS))
def test_solved_openings_are_the_known_ones(size, solver_of_four):
    """The first player has placed a stone and the second cannot win: 2 of 4, 5 of 9 and 4 of 16 openings."""
    solver = solver_of_four if size == 4 else Solver(size)
    won = {divmod(cell, size) for cell in range(size * size) if not solver.wins(0, 1 << cell, player=1)}
    assert won == OPENINGS[size]
    assert solver.wins(0, 0, player=0)


def test_the_solver_agrees_with_a_plain_search_on_every_board_it_can_reach():
    """Solver against `best`, which knows no tables and no threats, wherever random games lead on 3 x 3."""
    solver, generator = Solver(3), torch.Generator().manual_seed(0)
    boards = set()
    for _ in range(60):
        board, player = (0,) * 9, 0
        for cell in torch.randperm(9, generator=generator).tolist():
            boards.add((board, player))
            board = (*board[:cell], player + 1, *board[cell + 1 :])
            if joined(board, player):
                break
            player = 1 - player
    for board, player in boards:
        stones, mover = torch.tensor([board]), torch.tensor([player])
        assert bool(solver.mover_wins(stones, player=mover)) == (best(board, player) is not None)


def by_solver(solver, mistakes=()):
    """Plays the first winning cell of 4 x 4 if there is one, else the first free one."""

    def move(stones, player):
        own, other = (sum(1 << k for k in range(16) if stones[k] == c) for c in (player + 1, 2 - player))
        free = [k for k in range(16) if stones[k] == 0]
        if (tuple(stones[:16]), player) in mistakes:
            return free[0]
        won = solver._joined[player]
        winning = [
            k for k in free if won[own | 1 << k] or not solver.wins(other, own | 1 << k, player=1 - player)
        ]
        return (winning or free)[0]

    def policy(root):
        pairs = zip(root["state", "stones"].tolist(), root["player"].tolist(), strict=True)
        return root.set("action", torch.tensor([move(stones, player) for stones, player in pairs]))

    return policy


def test_perfect_play_on_four_by_four_is_proved_and_one_mistake_found(solver_of_four):
    """Of the openings d1 and a1 the first is won for who played it, the second for who answers."""
    env = make_env("hex", size=4)
    opened = opening_positions(env, size=4, openings=torch.tensor([3, 0]))
    perfect = by_solver(solver_of_four)
    first, second = (
        wins_all_replies(env, perfect, opened, seat=seat, solver=solver_of_four).tolist() for seat in (0, 1)
    )
    assert (first, second) == ([True, False], [False, True])
    errs = by_solver(solver_of_four, {((1, *[0] * 15), 1)})
    assert not wins_all_replies(env, errs, opened[1:], seat=1, solver=solver_of_four)


def test_worst_cases_are_told_by_board():
    def player(settings):
        env = make_env("hex", **settings)
        return env, shortest_way(env)

    found = exploitability(player)
    assert set(found) == {"3x3", "4x4"}
    assert all(0 < value <= 1 for value in found.values())
