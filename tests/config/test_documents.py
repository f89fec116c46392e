"""Files are read as people mean them: numbers are numbers, text is text, and nothing is guessed twice."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.documents import parse_value, read


def write(folder, text, name="a.yaml"):
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E6", 1e6),
        ("1_000_000", 1_000_000),
        ("-3", -3),
        ("+.5", 0.5),
        ("010", 10),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ('"3"', "3"),
        ("cuda:1", "cuda:1"),
        ("[1, 2e0, x]", [1, 2.0, "x"]),
        ("{a: 1e1}", {"a": 10.0}),
    ],
)
def test_values(tmp_path, text, value):
    read_back = read(write(tmp_path, f"key: {text}\n")).values["key"]
    assert read_back == value
    assert type(read_back) is type(value)
    assert parse_value(text) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_python_prints_is_read_as_itself(number):
    assert parse_value(repr(number)) == number


def test_not_finite_numbers_are_read_as_such():
    assert math.isnan(parse_value(".nan"))
    assert parse_value("-inf") == -math.inf


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(codec="ascii", exclude_categories=["Cc"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc_", min_size=1), plain, max_size=4))
def test_json_reads_back_as_it_was(tmp_path_factory, values):
    file = tmp_path_factory.mktemp("json") / "a.json"
    file.write_text(json.dumps(values, indent="\t"))
    layer = read(file)
    assert layer.problems == []
    assert layer.values == values


def test_lines_are_known(tmp_path):
    layer = read(write(tmp_path, "a: 1\nb:\n  c: 2\n  d: [1,\n    2]\n"))
    assert layer.origin(("b", "c")).endswith("a.yaml, line 3")
    assert layer.origin(("b", "d", 1)).endswith("line 5")
    assert layer.origin(("b", "missing")).endswith("line 2")


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_name_given_twice_is_refused(tmp_path, name):
    layer = read(write(tmp_path, '{"a": 1,\n "b": {"c": 1,\n "c": 2}}', name))
    assert [(problem.path, problem.origin[-6:]) for problem in layer.problems] == [(("b", "c"), "line 3")]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.yaml", "a: [1, 2\nb: 3\n", "line 2"),
        ("a.yaml", "a: 1\n\tb: 2\n", "line 2"),
        ("a.yaml", "a: 1\n---\nb: 2\n", "line"),
        ("a.yaml", "- 1\n- 2\n", "names with values"),
        ("a.yaml", "just text", "names with values"),
        ("a.yaml", "[a, b]: 3\n", "expected a name"),
        ("a.yaml", "a: &x [*x]\n", "alias"),
        ("a.yaml", "a: *nowhere\n", "line 1"),
        ("a.yaml", b"a: \xff\xfe\n", "UTF-8"),
        ("a.yaml", b"a: \x00\n", "not YAML"),
        ("a.yaml", "a: " + "[" * 3000, "nested"),
        ("a.json", '{"a": 1,}', "line 1"),
        ("a.json", '{"a": 1\n"b": 2}', "line 2"),
        ("a.json", "a: 1", "not JSON"),
        ("a.json", "", "not JSON"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, text, says):
    layer = read(write(tmp_path, text, name))
    assert len(layer.problems) == 1
    assert says in str(layer.problems[0])
    assert name in str(layer.problems[0])


def test_laughing_aliases_are_refused(tmp_path):
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 9):
        text += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    assert "too many values" in str(read(write(tmp_path, text)).problems[0])


def test_files_that_are_not_there(tmp_path):
    assert "cannot be read" in str(read(tmp_path / "none.yaml").problems[0])
    assert "folder" in str(read(tmp_path).problems[0])
    assert read(write(tmp_path, "")).values == {}
