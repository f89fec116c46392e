"""Text in and out: whatever is written is read again, and what is no cell is refused in its own terms."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import DataError
from edgewise.envs.registry import make_env
from edgewise.systems.hex import notation

sizes = st.integers(2, 19)


@given(sizes, st.data())
def test_cells_are_read_as_they_were_written(size, data):
    cell = data.draw(st.integers(0, size**2 - 1))
    assert notation.read_cell(notation.write_cell(cell, size), size) == cell


def test_cells_are_named_as_on_paper():
    assert notation.write_cell(5, 3) == "c2"
    assert notation.read_cell(" C2 ", 3) == 5


def test_a_swap_is_a_move_of_the_environment():
    env = make_env("hex", size=3, swap=True, num_envs=1, seed=0)
    root = env.reset()
    for cell in (1, 1):
        root = env.step_and_maybe_reset(root.set("action", torch.tensor([cell])))[1]
    board = notation.write_board(root["state", "stones"][0, :9].tolist(), 3)
    assert board == ". . .\n o . .\n  . . ."


@pytest.mark.parametrize(("text", "complaint"), [("d1", "from a1 to c3"), ("a0", "no cell")])
def test_what_is_no_cell_is_refused(text, complaint):
    with pytest.raises(DataError, match=complaint):
        notation.read_cell(text, 3)
