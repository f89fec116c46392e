"""Bytes come in through one door, `config/files.py`, and no pattern takes time beyond a text's length."""

import ast
import re
from pathlib import Path
from re import _parser as parser

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "edgewise"
FILES = sorted(SOURCE.rglob("*.py"))
DOOR = {"config/files.py": "is the door"}
EXCEPTIONS = {
    "cli/main.py": "opens /dev/null for a broken pipe",
    "runs/durable.py": "opens folders to flush them, and new files to write them",
    "runs/checkpoint/tensor_file.py": "creates files",
    "experiments/export/program.py": "opens the program that it has written",
    "plugins/installed.py": "reads names of installed packages at every start, before anything is given",
}
READERS = {"read_bytes", "read_text"}
LIBRARIES = {"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "parse", "from_file", "read_csv"}
MODULES = {"np", "numpy", "torch", "ElementTree", "pd", "onnx"}
CHECKED = {"safe_open", "load_file", "InferenceSession"}
"""Functions of libraries that open a file by its name: it goes through `sources.check` first."""


def readers(source):
    """Return the line and the text of every call that reads a file past the door."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        writes = not {"wb", "xb", "w", "x"}.isdisjoint(modes)
        if (
            (name in READERS and owner.rpartition(".")[2] not in ("", "files", "run_files", "sources"))
            or (name == "open" and owner in ("", "os", "io", "gzip", "bz2") and not writes)
            or (name == "open" and owner not in ("", "os", "webbrowser", "tarfile") and not writes)
            or (name in LIBRARIES and owner in MODULES)
            or (name in CHECKED and "sources.check(" not in ast.unparse(node))
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node)[:60]}")
    return found


def test_only_the_door_opens_files():
    found = {
        name: calls
        for file in FILES
        if (name := str(file.relative_to(SOURCE))) not in DOOR | EXCEPTIONS
        and (calls := readers(file.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    "planted",
    [
        "text = path.read_text()",
        "content = Path(name).read_bytes()",
        "with open(path) as file: pass",
        "with path.open('rb') as file: pass",
        "descriptor = os.open(path, os.O_RDONLY)",
        "table = np.load(path)",
        "with safe_open(path, framework='pt') as file: pass",
        "session = onnxruntime.InferenceSession(str(path))",
    ],
)
def test_a_planted_reader_is_seen(planted):
    assert len(readers(planted)) == 1


def test_what_goes_through_the_door_is_not_reported():
    assert readers("files.read_text(path)\nsources.read_bytes(path)\nsafe_open(sources.check(path))") == []


def repeats(pattern, flags=0):
    """Return whether two unbounded repeats that share a character stand beside each other.

    Such a pattern takes time that grows with the square of the text, or worse, where it does not match.
    """
    letters = [chr(code) for code in range(256)]
    categories = {"DIGIT": r"\d", "NOT_DIGIT": r"\D", "SPACE": r"\s", "NOT_SPACE": r"\S", "WORD": r"\w"}

    def characters(item):
        """Return the characters below 256 that a single item of a pattern matches; none for a group."""
        kind, value = str(item[0]), item[1]
        if kind == "LITERAL":
            return {chr(value)}
        if kind == "NOT_LITERAL":
            return set(letters) - {chr(value)}
        if kind == "ANY":
            return set(letters)
        if kind == "RANGE":
            return {each for each in letters if value[0] <= ord(each) <= value[1]}
        if kind == "CATEGORY":
            pattern = categories.get(str(value).removeprefix("CATEGORY_"), r"\W")
            return {each for each in letters if re.match(pattern, each)}
        if kind == "IN":
            found = set().union(*(characters(each) for each in value if str(each[0]) != "NEGATE"))
            return set(letters) - found if str(value[0][0]) == "NEGATE" else found
        return set()

    def walk(data):
        before = None
        for item in data:
            kind, value = item
            name = str(kind)
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                low, high, inner = value
                open_ended = high == parser.MAXREPEAT
                if walk(inner):
                    return True
                own = characters(inner[0]) if len(inner) == 1 else set()
                if open_ended and before and own & before:
                    return True
                if open_ended:
                    before = own | (before or set() if low == 0 else set())
                elif low > 0:
                    before = None
            elif name == "SUBPATTERN":
                if walk(value[-1]):
                    return True
                before = None
            elif name == "BRANCH":
                if any(walk(each) for each in value[1]):
                    return True
                before = None
            elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
                before = None
        return False

    return walk(parser.parse(pattern, flags))


def patterns():
    """Return file, line and text of every pattern that is written as a constant."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and ast.unparse(node.func.value) == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, str)
            ):
                yield f"{file.relative_to(SOURCE)}:{node.lineno}", node.args[0].value


def test_no_pattern_has_adjacent_repeats():
    assert [(place, text) for place, text in patterns() if repeats(text)] == []


def test_adjacent_repeats_are_seen():
    assert repeats(r"[0-9][0-9_]*\.?[0-9_]*x")
    assert repeats(r"a+a+b")
    assert not repeats(r"[0-9]+\.[0-9]+")
