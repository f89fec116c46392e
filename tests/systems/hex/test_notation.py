"""Text in and out: whatever is written is read again, and what is no board is refused in its own terms."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import DataError
from edgewise.envs.registry import make_env
from edgewise.systems.hex import notation

sizes = st.integers(2, 19)


@given(sizes, st.data())
def test_boards_and_moves_are_read_as_they_were_written(size, data):
    stones = data.draw(st.lists(st.integers(0, 2), min_size=size**2, max_size=size**2))
    assert notation.read_board(notation.write_board(stones, size)) == (stones, size)
    cells = data.draw(st.lists(st.integers(0, size**2 - 1), min_size=1, max_size=9, unique=True))
    assert notation.read_moves(notation.write_moves(cells, size), size) == cells


def test_cells_are_named_as_on_paper():
    assert notation.write_cell(5, 3) == "c2"
    assert notation.read_cell(" C2 ", 3) == 5


def test_a_swap_is_a_move_of_the_environment():
    env = make_env("hex", size=3, swap=True, num_envs=1, seed=0)
    root = env.reset()
    for cell in notation.read_moves("b1 swap", 3):
        root = env.step_and_maybe_reset(root.set("action", torch.tensor([cell])))[1]
    board = notation.write_board(root["state", "stones"][0, :9].tolist(), 3)
    assert board == ". . .\n o . .\n  . . ."
    assert notation.write_moves([1, 1, 4], 3) == "b1 swap b2"


@pytest.mark.parametrize(
    ("read", "text", "complaint"),
    [
        (lambda text: notation.read_cell(text, 3), "d1", "from a1 to c3"),
        (lambda text: notation.read_cell(text, 3), "a0", "no cell"),
        (lambda text: notation.read_moves(text, 3), "a1 b1 swap", "only the second"),
        (notation.read_board, "x .\n . . .", "row 2 has 3 cells"),
        (notation.read_board, "x y\n . .", "'y'"),
        (notation.read_board, "x", "from 2 to 19 rows"),
    ],
)
def test_what_is_no_board_is_refused(read, text, complaint):
    with pytest.raises(DataError, match=complaint):
        read(text)
