"""Currents agree with a dense solution of Kirchhoff's equations and lead to good cells."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.envs.registry import make_env
from edgewise.evaluation.arena.match import play_match
from edgewise.systems.hex import dynamics, observe
from edgewise.systems.hex.baselines import least_resistance, most_current, shortest_way
from edgewise.systems.hex.circuit import LEAK, WIRE, currents
from edgewise.systems.hex.config import SMALLEST
from edgewise.systems.hex.dynamics import missing_stones

SIZES, SEEDS = st.integers(2, 6), st.integers(0, 2**31)


def random_board(size, capacity, seed):
    """Return stones `[1, N]` of a position that is not over."""
    table = dynamics.neighbour_table(size, capacity)
    generator = torch.Generator().manual_seed(seed)
    stones, chains = dynamics.empty_boards(1, capacity)
    plies = int(torch.randint(size * size, (), generator=generator))
    order = torch.randperm(size * size, generator=generator)
    for ply in range(plies):
        cell, player = order[ply : ply + 1], torch.tensor([ply % 2])
        after = dynamics.place(stones, chains, cell=cell, player=player, neighbours=table[cell])
        if dynamics.has_won(after[1], player):
            break
        stones, chains = after
    return stones


def dense_currents(stones, size, capacity, player):
    """Solve for all potentials at once, from the list of neighbours, in double precision."""
    near = dynamics.cell_neighbours(size, capacity)
    source, sink = capacity**2 + 2 * player, capacity**2 + 2 * player + 1
    price = {0: 1.0, player + 1: WIRE, 2 - player: float("inf")}
    resistance = [price[stone] for stone in stones[0].tolist()]
    matrix = torch.eye(len(near), dtype=torch.double) * LEAK
    into = torch.zeros(len(near), dtype=torch.double)
    for cell, nodes in enumerate(near):
        for node in nodes:
            conductance = 1 / (resistance[cell] + resistance[node])
            matrix[cell, cell] += conductance
            if node < len(near):
                matrix[cell, node] -= conductance
            into[cell] += conductance * (node == source)
    volt = torch.linalg.solve(matrix, into).tolist()
    potential = {**dict(enumerate(volt)), source: 1.0, sink: 0.0}
    through, total = [], 0.0
    for cell, nodes in enumerate(near):
        flows = {
            node: (potential[cell] - potential[node]) / (resistance[cell] + resistance[node])
            for node in nodes
            if node in potential
        }
        through.append(sum(map(abs, flows.values())) / 2)
        total -= flows.get(source, 0.0)
    return torch.tensor(through) / total, 1 / total


@given(SIZES, st.integers(0, 2), SEEDS)
def test_rows_give_the_same_currents_as_all_cells_at_once(size, room, seed):
    stones = random_board(size, size + room, seed)
    shares, resistance = currents(stones, torch.tensor([size]))
    for player in (0, 1):
        expected, total = dense_currents(stones, size, size + room, player)
        torch.testing.assert_close(shares[0, : size * size, player], expected, atol=1e-3, rtol=1e-3)
        torch.testing.assert_close(resistance[0, player].item(), total, atol=0.0, rtol=1e-3)
    assert (shares[0, size * size :] == 0).all()


@given(SIZES, SEEDS)
def test_reflection_and_other_colours_exchange_the_players(size, seed):
    stones = random_board(size, size, seed)
    cell = torch.arange(size * size)
    reflected = stones.clone()
    board = stones[0, : size * size]
    reflected[0, dynamics.mirrored(cell, torch.tensor(size))] = torch.where(board == 0, board, 3 - board)
    shares, resistance = currents(stones, torch.tensor([size]))
    others, other_resistance = currents(reflected, torch.tensor([size]))
    back = others[0, dynamics.mirrored(cell, torch.tensor(size))].flip(-1)
    torch.testing.assert_close(shares[0, : size * size], back, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(resistance, other_resistance.flip(-1), atol=0.0, rtol=1e-3)


def test_all_current_passes_a_cell_that_every_path_needs():
    """The first player has a1 and a3 of the left column of 3 x 3, the second b1, c1 and b2."""
    stones, _ = dynamics.empty_boards(1, 3)
    stones[0, [0, 6]] = dynamics.FIRST
    stones[0, [1, 2, 4]] = dynamics.SECOND
    shares, resistance = currents(stones, torch.tensor([3]))
    assert shares[0, 3, 0] > 0.99
    assert resistance[0, 0].item() == pytest.approx(2 * (1 + WIRE) + 4 * WIRE, rel=1e-2)


def test_the_mover_s_currents_come_first():
    env = make_env("hex", size=5, opening_plies=(3, 6), currents=True, prior="current", num_envs=32, seed=0)
    root = env.reset()
    shares, resistance = currents(root["state", "stones"], root["state", "size"])
    second = root["player"] == 1
    assert 0 < int(second.sum()) < 32
    seen = root["graph", "x"][..., observe.NODE_FEATURES :]
    torch.testing.assert_close(seen[~second, :, :2], shares[~second])
    torch.testing.assert_close(seen[second, :, :2], shares[second].flip(-1))
    torch.testing.assert_close(seen[second, 0, 2], 1 / (1 + resistance[second, 1]))
    best = root["action_prior"].masked_fill(~root["action_mask"], -torch.inf).argmax(-1)
    assert torch.equal(best, most_current(env)(root.copy())["action"])


def test_current_over_all_paths_beats_the_shortest_path():
    env = make_env("hex", size=7, opening_plies=2, num_envs=64, seed=0)
    assert play_match(env, most_current(env), shortest_way(env), seed=0).score > 0.75


def test_looking_ahead_beats_the_rule_that_it_looks_ahead_with():
    env = make_env("hex", size=5, opening_plies=1, num_envs=48, seed=0)
    found = play_match(env, least_resistance(env), most_current(env), seed=3)
    assert found.score > 0.6
    assert found.interval().low > 0.5


def test_looking_ahead_completes_a_connection():
    """The first player owns two thirds of the way from top to bottom and moves: the game ends at once."""
    env = make_env("hex", size=3, num_envs=1, seed=0)
    root = env.reset()
    near = env.tables[root["state", "size"] - SMALLEST]
    for cell in (4, 0, 1, 2):  # the first player takes the centre and a cell above it
        root = env.step(root.set("action", torch.tensor([cell])))["next"].clone()
    assert missing_stones(root["state", "stones"], near).amin(1)[0, 0] <= 1
    assert env.step(least_resistance(env)(root))["next", "done"].all()
