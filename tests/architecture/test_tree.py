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
    assert [file for file in FILES if "cli" not in file.parts and pattern.search(file.read_text())] == []


def test_an_environment_is_known_only_to_its_folder_the_registry_and_the_recipes():
    names = [folder.name for folder in (SOURCE / "envs").iterdir() if (folder / "env.py").exists()]
    assert names
    for layer in ("graphs", "models", "data", "objectives", "algorithms", "evaluation", "training", "report"):
        for file in (SOURCE / layer).rglob("*.py"):
            tree = ast.parse(file.read_text())
            strings = {
                n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            }
            assert not strings & set(names), f"{file} knows {strings & set(names)}"


def test_one_environment_never_imports_another():
    folders = [folder.name for folder in (SOURCE / "envs").iterdir() if (folder / "env.py").exists()]
    for name in folders:
        text = "\n".join(file.read_text() for file in (SOURCE / "envs" / name).glob("*.py"))
        assert [other for other in folders if other != name and f"edgewise.envs.{other}" in text] == []


@pytest.mark.parametrize("name", ["config", "dynamics", "env", "baselines", "render", "observe", "scenario"])
def test_environment_folders_are_alike(name):
    for folder in (SOURCE / "envs").iterdir():
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
