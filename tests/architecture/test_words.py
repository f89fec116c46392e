"""Nothing below `systems` knows a system: neither by import (see test_layers) nor by word."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "edgewise"
CORE = ("config", "graphs", "envs", "data", "objectives", "search", "evaluation", "training", "report")
CORE += ("experiments", "terminal", "cli", "models", "algorithms", "studies", "plugins", "runs", "scale")
DOMAIN = ("boat", "robot", "hull", "metre", "packet", "proof", "prover", "clause", "thrust", "knowledge")
SYSTEMS = tuple(folder.name for folder in (SOURCE / "systems").iterdir() if (folder / "env.py").exists())
EXAMPLE = "graphwalk"
"""The system that runnable examples and example commands may name."""
WORDS = re.compile(rf"(?<![a-z])({'|'.join((*DOMAIN, *SYSTEMS))})s?(?![a-z])", re.IGNORECASE)
COMMAND = re.compile(r"edgewise [a-z]+ |>>> |make_env|runs/")


def foreign_words(text):
    """The words of a system in a file's names, strings and comments, with their lines."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", line.replace(".hex()", ""))
        for match in WORDS.finditer(split):
            word = match[1].lower()
            if word != EXAMPLE or not (COMMAND.search(line) or re.search(f"[\"']{EXAMPLE}", line)):
                found.append((number, word))
    return found


def core_files():
    inside = [file for package in CORE for file in sorted((SOURCE / package).rglob("*"))]
    return [file for file in (*sorted(SOURCE.glob("*.py")), *inside) if is_text(file)]


def test_every_package_is_of_the_core_or_a_system():
    assert {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()} == {
        *CORE,
        "systems",
        "problems",
        "benchmark",
    }


def is_text(file):
    return file.suffix in (".py", ".js", ".html", ".css")


@pytest.mark.parametrize("file", core_files(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_the_core_has_no_word_of_a_system(file):
    assert foreign_words(file.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "def robot_radius(state): ...",
        "    # how far the hulls are apart",
        '"""The value of a proof."""',
        'if name == "swarm":',
        "num_packets = 3",
        "class HexBoard: ...",
        '"""Walks on a graphwalk."""',
        "METRES = 20.0",
        "marine_scale = 1",
    ],
)
def test_a_planted_word_is_noticed(line):
    assert foreign_words(line)


@pytest.mark.parametrize(
    "line",
    [
        "digest = sha.hexdigest()",
        '>>> env = make_env("graphwalk")',
        "waterproof = True",
        "parameter = 1",
        "reasoned = 2",
    ],
)
def test_words_that_only_look_like_it_are_not(line):
    assert foreign_words(line) == []


def test_no_system_is_imported_by_a_string():
    """Addresses of systems stand in their own declarations alone; the door knows the package, no member."""
    for file in SOURCE.rglob("*.py"):
        if "systems" in file.relative_to(SOURCE).parts[:1]:
            continue
        strings = [
            node.value
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in strings if "edgewise.systems." in text], file
