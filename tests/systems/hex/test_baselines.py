"""Players by hand: floods agree with chains, winning cells are found, and more looking plays better."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.systems.hex import dynamics
from edgewise.systems.hex.baselines import filling_win_rates, monte_carlo, random_player


@given(st.integers(2, 6), st.integers(0, 2), st.integers(0, 2**31))
def test_floods_and_chains_find_the_same_winner(size, room, seed):
    capacity = size + room
    table = dynamics.neighbour_table(size, capacity)
    stones, chains = dynamics.empty_boards(1, capacity)
    cells = torch.randperm(size * size, generator=torch.Generator().manual_seed(seed))
    for ply, cell in enumerate(cells.split(1)):
        player = torch.tensor([ply % 2])
        stones, chains = dynamics.place(stones, chains, cell=cell, player=player, neighbours=table[cell])
        own = stones == player + 1
        found = dynamics.connects(own, table.unsqueeze(0), player=player)
        assert torch.equal(found, dynamics.has_won(chains, player))


def test_a_cell_that_wins_now_is_worth_most():
    """The first player has a1 and a2 of the left column of 3 x 3; a3 joins top and bottom."""
    stones, _ = dynamics.empty_boards(1, 4)
    stones[0, [0, 3]] = dynamics.FIRST
    stones[0, [2, 5]] = dynamics.SECOND
    near = dynamics.neighbour_table(3, 4).unsqueeze(0)
    torch.manual_seed(0)
    worth = filling_win_rates(stones, near, player=torch.tensor([0]), count=256)
    assert worth[0, 6] == 1.0
    assert worth[0, [1, 4, 7, 8]].max() < 1.0


def test_the_last_free_cell_is_the_mover_s():
    stones, _ = dynamics.empty_boards(1, 2)
    stones[0, [0, 1, 3]] = torch.tensor([dynamics.FIRST, dynamics.SECOND, dynamics.SECOND], dtype=torch.int8)
    near = dynamics.neighbour_table(2, 2).unsqueeze(0)
    for player in (0, 1):
        worth = filling_win_rates(stones, near, player=torch.tensor([player]), count=8)
        assert worth[0, 2] == 1.0


def test_looking_at_fillings_beats_random_play():
    env = make_env("hex", size=4, opening_plies=1, num_envs=64, seed=0)
    assert play_match(env, monte_carlo(env), random_player(env), seed=0).score > 0.9
