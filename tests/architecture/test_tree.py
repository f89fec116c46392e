"""The shape of the tree: names that say nothing, copies of pickle, prints and private paths stay out."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "edgewise"
FILES = sorted(SOURCE.rglob("*.py"))
EMPTY_WORDS = {"utils", "util", "common", "helpers", "helper", "misc", "base_utils"}


def test_no_file_has_a_name_that_says_nothing():
    assert [file for file in FILES if file.stem in EMPTY_WORDS] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_file_says_why_it_exists(file):
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    assert docstring, "no docstring"
    assert "placeholder" not in docstring


def test_nothing_is_pickled():
    pattern = re.compile(
        r"^\s*(import|from) (pickle|cloudpickle|dill|joblib)\b|torch\.(load|save)\(", re.MULTILINE
    )
    assert [file for file in FILES if pattern.search(file.read_text())] == []


def test_only_the_command_line_writes_to_stdout():
    pattern = re.compile(r"^\s*print\(", re.MULTILINE)
    assert [file for file in FILES if pattern.search(file.read_text())] == []


@pytest.mark.parametrize("name", ["config", "dynamics", "env", "baselines", "render", "observe", "scenario"])
def test_environment_folders_are_alike(name):
    for folder in (SOURCE / "systems").iterdir():
        if (folder / "env.py").exists():
            assert (folder / f"{name}.py").exists(), f"{folder.name} has no {name}.py"
            assert (folder / "README.md").exists(), f"{folder.name} has no card"


def test_no_private_path_or_host_is_shipped():
    pattern = re.compile(r"/root/|/work/|/opt/|\.\./shared|shared/(data|spec|golden|seeds)")
    tracked = [
        *FILES,
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.toml"),
        ROOT / "Makefile",
    ]
    assert [file for file in tracked if pattern.search(file.read_text())] == []
