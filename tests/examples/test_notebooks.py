"""The notebooks run from top to bottom, and what is stored in them is what their code shows."""

import re

import pytest
from tests.examples import notebook

SMALL = (
    ("total_frames=40_000,", "total_frames=96, num_envs=4, rollout_length=8, hidden=8, heads=2, layers=1,"),
    ("progress=False", "evaluation={'episodes': 4}, tensorboard=False, progress=False"),
    ("episodes=100", "episodes=4"),
    ("episodes=200", "episodes=4"),
    ("num_envs=100", "num_envs=4"),
)
"""Settings that make the runs of a notebook a second long."""


@pytest.fixture
def folder(examples):
    return examples / "notebooks"


def test_there_are_three(folder):
    names = {path.stem for path in folder.glob("*.ipynb")}
    assert names == {"train_and_look", "own_environment", "policies_to_try"}


@pytest.mark.parametrize("name", ["train_and_look", "own_environment", "policies_to_try"])
def test_a_notebook_runs(folder, tmp_path, monkeypatch, name):
    stored = notebook.read(folder / f"{name}.ipynb")
    before = [(cell["execution_count"], kinds(cell)) for cell in notebook.code_cells(stored)]
    monkeypatch.chdir(tmp_path)
    notebook.run(stored, replace=SMALL)
    assert [(cell["execution_count"], kinds(cell)) for cell in notebook.code_cells(stored)] == before


@pytest.mark.parametrize("name", ["train_and_look", "own_environment", "policies_to_try"])
def test_a_stored_notebook_names_no_folder_of_this_machine(folder, name):
    assert not re.search(r"/(root|home|tmp|work)/", (folder / f"{name}.ipynb").read_text(encoding="utf-8"))


def kinds(cell):
    """What a cell shows: the types of its outputs and their formats."""
    return [(output["output_type"], sorted(output.get("data", ()))) for output in cell["outputs"]]
