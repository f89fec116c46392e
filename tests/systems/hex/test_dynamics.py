"""Hex against exact results, a search for winners, and symmetry."""

from functools import cache

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.plugins import environment
from edgewise.systems.hex import dynamics
from edgewise.systems.hex.baselines import missing_stones

WINNING_OPENINGS = {
    2: {(0, 1), (1, 0)},
    3: {(0, 2), (1, 0), (1, 1), (1, 2), (2, 0)},
}


def neighbours(cell: int, size: int) -> list[int]:
    row, column = divmod(cell, size)
    near = [(row + down, column + right) for down, right in dynamics.NEIGHBOURS]
    return [r * size + c for r, c in near if 0 <= r < size and 0 <= c < size]


def joined(board: tuple[int, ...], size: int, player: int) -> bool:
    """Whether `player` has joined its sides, by searching from one of them."""

    def index(cell: int) -> int:
        return divmod(cell, size)[player]

    found = {cell for cell in range(size * size) if board[cell] == player + 1 and index(cell) == 0}
    open_cells = list(found)
    while open_cells:
        for cell in neighbours(open_cells.pop(), size):
            if board[cell] == player + 1 and cell not in found:
                found.add(cell)
                open_cells.append(cell)
    return any(index(cell) == size - 1 for cell in found)


def play(moves: list[int], size: int, capacity: int) -> list[tuple[tuple[int, ...], bool]]:
    """The boards after each move, and whether the mover has won, by our rules."""
    table = dynamics.neighbour_table(size, capacity)
    stones, chains = dynamics.empty_boards(1, capacity)
    seen = []
    for ply, move in enumerate(moves):
        cell, player = torch.tensor([move]), torch.tensor([ply % 2])
        stones, chains = dynamics.place(stones, chains, cell=cell, player=player, neighbours=table[cell])
        seen.append((tuple(stones[0, : size * size].tolist()), bool(dynamics.has_won(chains, player))))
    return seen


@given(st.integers(2, 7), st.integers(0, 2), st.randoms(use_true_random=False))
def test_the_winner_is_who_has_a_chain_from_side_to_side(size, room, random):
    moves = random.sample(range(size * size), size * size)
    for ply, (board, won) in enumerate(play(moves, size, size + room)):
        assert won == joined(board, size, ply % 2)
        if won:
            return
    pytest.fail("a full board has a winner")


@pytest.mark.parametrize("size", sorted(WINNING_OPENINGS))
def test_winning_openings_are_the_known_ones(size):
    @cache
    def wins(board: tuple[int, ...], player: int) -> bool:
        """Whether `player`, to move, wins."""
        for cell in range(size * size):
            if board[cell] == dynamics.EMPTY:
                after = (*board[:cell], player + 1, *board[cell + 1 :])
                if joined(after, size, player) or not wins(after, 1 - player):
                    return True
        return False

    empty = (0,) * (size * size)
    openings = [cell for cell in range(size * size) if not wins((*empty[:cell], 1, *empty[cell + 1 :]), 1)]
    assert {divmod(cell, size) for cell in openings} == WINNING_OPENINGS[size]


def test_boards_of_different_sizes_do_not_mix():
    both = make_env("hex", size=(3, 6), num_envs=64, seed=3)
    state = both.rollout(60, break_when_any_done=False)["next", "state"]
    cells = state["stones"][..., :-4]
    beyond = torch.arange(cells.shape[-1]) >= state["size"].square().unsqueeze(-1)
    assert beyond.any()
    assert (cells[beyond] == dynamics.EMPTY).all()
    borders = torch.tensor([dynamics.FIRST] * 2 + [dynamics.SECOND] * 2)
    assert (state["stones"][..., -4:] == borders).all()


@pytest.mark.parametrize(("size", "rate"), [(3, 0.673), (5, 0.584), (7, 0.544)])
def test_the_first_player_wins_random_games_as_often_as_known(size, rate):
    games = 4000
    env = make_env("hex", size=size, num_envs=games, seed=size)
    torch.manual_seed(size)
    result = evaluate(env, environment("hex").load_baselines()["random"](env), episodes=games, seed=size)
    won = sum(result.metrics["first_player_won"]) / games
    error = (rate * (1 - rate) * (1 / games + 1 / 1500)) ** 0.5
    assert abs(won - rate) < 4 * error


def test_swapping_takes_the_stone_over_mirrored():
    env = make_env("hex", size=3, swap=True, num_envs=1, seed=0)
    root = env.reset().set("action", torch.tensor([1]))
    root = env.step_and_maybe_reset(root)[1]
    assert root["action_mask"][0, :9].all()
    root = env.step_and_maybe_reset(root.set("action", torch.tensor([1])))[1]
    assert root["state", "stones"][0, :9].tolist() == [0, 0, 0, dynamics.SECOND, 0, 0, 0, 0, 0]
    assert int(root["player"]) == 0
    assert not root["action_mask"][0, 3]


def test_missing_stones_count_the_shortest_way():
    stones, _ = dynamics.empty_boards(1, 4)
    near = dynamics.neighbour_table(4, 4).unsqueeze(0)
    assert missing_stones(stones, near)[0, :16].amin(0).tolist() == [4, 4]
    stones[0, [0, 4, 8]] = dynamics.FIRST
    assert missing_stones(stones, near)[0, :16].amin(0).tolist() == [1, 4]


@given(st.integers(3, 5), st.integers(0, 2**31))
def test_missing_stones_are_those_of_dijkstra(size, seed):
    """Beside networkx: the cheapest way from border to border through every free or own cell."""
    generator = torch.Generator().manual_seed(seed)
    stones, _ = dynamics.empty_boards(1, size + 1)
    stones[0, : size * size] = torch.randint(0, 3, (size * size,), generator=generator).to(torch.int8)
    near = dynamics.neighbour_table(size, size + 1)
    found = missing_stones(stones, near.unsqueeze(0))[0]
    for player in (0, 1):
        start, goal = len(near) - 4 + 2 * player, len(near) - 3 + 2 * player
        ways = networkx.DiGraph()
        for cell in range(size * size):
            if int(stones[0, cell]) in (0, player + 1):
                for other in near[cell].tolist():
                    cost = int(stones[0, cell] == 0)
                    ways.add_edge(other, cell, cost=cost)
        lengths = [
            networkx.single_source_dijkstra_path_length(ways, border, weight="cost") if border in ways else {}
            for border in (start, goal)
        ]
        for cell in range(size * size):
            if all(cell in length for length in lengths):
                both = lengths[0][cell] + lengths[1][cell] - int(stones[0, cell] == 0)
                assert found[cell, player] == both
            else:
                assert found[cell, player] > 100


def test_the_shortest_way_beats_random_play():
    env = make_env("hex", size=5, num_envs=128, seed=1)
    clever, random = (environment("hex").load_baselines()[name](env) for name in ("shortest_way", "random"))

    def mixed(root):
        first = root["player"] == 0
        return root.set(
            "action", torch.where(first, clever(root.clone())["action"], random(root.clone())["action"])
        )

    won = evaluate(env, mixed, episodes=128, seed=1).metrics["first_player_won"]
    assert sum(won) / len(won) > 0.95


def seen(stones, player, size):
    """All node features of one board of side `size`, cell by cell, `[size², F]`."""
    env = make_env("hex", size=size, max_size=size + 1, distances=True)
    board = dynamics.empty_boards(1, size + 1)
    board[0][0, : size * size] = stones
    state = env.reset()["state"].update({"stones": board[0], "player": torch.tensor([player])})
    return env.observe(state)["graph"]["x"][0, : size * size]


def test_nodes_show_how_near_the_mover_is_before_the_other():
    stones = torch.zeros(16, dtype=torch.int8)
    stones[[0, 4, 8]] = dynamics.FIRST
    for player, near in ((0, [1 / 2, 1 / 5]), (1, [1 / 5, 1 / 2])):
        x = seen(stones, player, 4)
        assert torch.allclose(x[:, 5:], torch.tensor(near).expand(16, 2))
        assert x[12, 3 + player] == 1
        assert x[:, 3 + player].sum() < x[:, 4 - player].sum()


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(0, 2**31))
def test_both_players_see_the_same_game(size, seed):
    """A board with colours, rows and columns exchanged is to the second player what it was to the first."""
    generator = torch.Generator().manual_seed(seed)
    stones = torch.randint(0, 3, (size * size,), generator=generator).to(torch.int8)
    exchanged = torch.tensor([0, 2, 1], dtype=torch.int8)[stones.long()].view(size, size).T.flatten()
    first, second = seen(stones, 0, size), seen(exchanged, 1, size)
    assert torch.equal(first.view(size, size, -1), second.view(size, size, -1).transpose(0, 1))


def test_random_openings_leave_games_undecided():
    root = make_env("hex", size=2, opening_plies=3, num_envs=300, seed=0).reset()["state"]
    for player in (0, 1):
        assert not dynamics.has_won(root["chains"], torch.full((300,), player)).any()
    assert root["plies"].max() == 3


def test_stones_are_those_of_the_mover_and_of_the_other():
    env = make_env("hex", size=3, num_envs=1, seed=0)
    root = env.reset()
    for cell, mine in ((4, [0.0, 1.0, 0.0]), (0, [1.0, 0.0, 0.0])):
        _, root = env.step_and_maybe_reset(root.set("action", torch.tensor([cell])))
        assert root["graph", "x"][0, 4].tolist() == mine
