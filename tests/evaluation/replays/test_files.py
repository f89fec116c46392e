"""Replays: what passes, what is refused and in which words, and that shortening changes nothing shown."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import DataError
from edgewise.evaluation.replays.files import check, compact, load, save
from edgewise.evaluation.replays.schema import COLORS, LAYERS

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "replay-format.md"


def example():
    """The whole replay of the guide."""
    block = re.search(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert block is not None
    return json.loads(block.group(1))


def shown(replay):
    """Every frame in full: an independent reading of the rules of the guide."""
    current = {layer["name"]: copy.deepcopy(layer) for layer in replay["layers"]}
    pictures = []
    for frame in replay["frames"]:
        for name, fields in frame.items():
            for field, value in fields.items():
                if isinstance(value, dict):
                    for index, item in value.items():
                        current[name][field][int(index)] = item
                else:
                    current[name][field] = copy.deepcopy(value)
        pictures.append(copy.deepcopy(current))
    return pictures


def test_the_guides_example_is_a_replay():
    assert check(example())["title"]


def test_the_guide_names_every_kind_field_and_colour():
    text = GUIDE.read_text()
    for kind, layer in LAYERS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{kind}` |"))
        named = set(re.findall(r"[a-z_]+", row)) - {kind}
        assert named == {*layer.items(), *layer.options}
        for name, field in layer.model_fields.items():
            assert not field.is_required() or name in ("name", "kind") or f"**{name}**" in row
    assert all(f"`{color}`" in text for color in COLORS)


def changed(path, value):
    """The example with one place changed; `path` is a dotted list of keys, `value` may be DELETE."""
    replay = example()
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = replay
    for key in parents:
        place = place[key]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    return replay


DELETE = "(deleted)"
FAULTS = [
    (
        "format",
        "edgewise-replay/9",
        r"replay\.format: edgewise-replay/1 is needed, got 'edgewise-replay/9'",
    ),
    ("title", DELETE, "'title' is missing"),
    ("frames", [], r"replay\.frames: at least 1 items"),
    ("colour", 1, "unknown field 'colour'"),
    ("bounds", [0, 0, 0, 1], "left < right"),
    ("fps", 0, r"replay\.fps: more than 0 is needed"),
    ("layers.0.kind", "blobs", "kind 'blobs' is none of nodes, edges"),
    ("layers.1.name", "nodes", "a second layer named 'nodes'"),
    ("layers.0.x", [0, 1], "x: 2, y: 3"),
    ("layers.0.x", 0, r"layers\[0\]\.x: a list is needed, got 0"),
    ("layers.0.x.1", float("nan"), r"\.x\[1\]: a finite number is needed, got nan"),
    ("layers.0.x.1", "wide", r"\.x\[1\]: a number is needed, got 'wide'"),
    ("layers.0.x.1", True, "a number is needed, got True"),
    ("layers.0.color", "red;}", "a colour"),
    ("layers.0.color", 1.5, "a colour"),
    ("layers.0.size", -1, r"\.size: at least 0 .*got -1"),
    ("layers.0.trial", 3, "unknown field 'trial'"),
    ("layers.1.between", DELETE, "'between' is missing"),
    ("layers.1.between", "knots", "'knots' is not a nodes layer"),
    ("layers.1.target", [1, 3], "index 3, but 'nodes' has 3 nodes"),
    ("layers.2.trail", 1.5, r"\.trail: a whole number is needed, got 1.5"),
    (
        "frames.1.walkers",
        {},
        r"replay\.frames\[1\]: no layer named 'walkers'; there are nodes, links, walker",
    ),
    ("frames.1.walker.trail", 3, "'trail' cannot change"),
    ("frames.1.walker.x", [1, 2], "x: 2, y: 1"),
    ("frames.1.walker.x", {"1": 2}, "must be a decimal text below 1"),
    ("frames.1.walker.x", {"0": "a"}, r"x\[0\]: a number is needed"),
    ("frames.1.nodes", {"color": {"0": "good"}}, "changes by index need a list before them"),
    ("frames.1.links", {"source": [0, 9]}, "index 9"),
    ("frames.1.nodes", {"x": [0], "y": [0], "label": ["a"]}, r"frames\[1\]\.links\.source: index 1, but"),
    ("series.0.values", [1, 2], "2 values, but there are 3 frames"),
    ("captions", ["one"], "1 values, but there are 3 frames"),
    ("marks", [{"frame": 3, "text": "late"}], "frame 3 of 3 frames"),
    ("legend", [{"color": "good"}], "'label' is missing"),
    ("facts.return", [1], r"facts\.return: text or a number is needed"),
]


@pytest.mark.parametrize(
    ("path", "value", "message"), FAULTS, ids=[f"{fault[0]}={fault[1]!r}" for fault in FAULTS]
)
def test_faults_are_named(path, value, message):
    with pytest.raises(DataError, match=message):
        check(changed(path, value))


def test_something_else_is_refused():
    with pytest.raises(DataError, match="a list, where an object is needed"):
        check([1])


def test_items_may_come_and_go():
    replay = example()
    replay["frames"][1]["links"] = {"source": [0], "target": [2], "width": 3}
    replay["frames"][2]["links"] = {"source": [], "target": []}
    assert check(replay) is replay


@st.composite
def replays(draw):
    """Replays with random motion, frames saying whole lists or changes by index."""
    count = draw(st.integers(2, 6))
    numbers = st.floats(-50, 50, allow_nan=False).map(lambda value: round(value, 2))
    colors = st.sampled_from(COLORS)
    columns = {"x": numbers, "y": numbers, "color": colors}
    layer = {"name": "dots", "kind": "nodes"}
    layer |= {field: draw(st.lists(kind, min_size=count, max_size=count)) for field, kind in columns.items()}
    frames = []
    for _ in range(draw(st.integers(1, 6))):
        fields = {}
        for field in draw(st.lists(st.sampled_from(sorted(columns)), unique=True)):
            kind = columns[field]
            indices = st.integers(0, count - 1).map(str)
            ways = [
                st.lists(kind, min_size=count, max_size=count),
                st.dictionaries(indices, kind, max_size=count),
            ]
            fields[field] = draw(st.one_of(ways))
        frames.append({"dots": fields} if fields or draw(st.booleans()) else {})
    return {"format": "edgewise-replay/1", "title": "random", "layers": [layer], "frames": frames}


@given(replays())
def test_shortening_shows_the_same(replay):
    before = copy.deepcopy(check(replay))
    shorter = compact(replay)
    assert replay == before, "the input is left alone"
    assert shown(check(shorter)) == shown(replay)
    assert len(json.dumps(shorter)) <= len(json.dumps(replay))


def test_numbers_are_rounded_and_frames_say_only_what_changed():
    replay = example()
    replay["frames"][1]["nodes"] = {"x": [0, 1.0, 3], "y": [0, 2, 1.23456789]}
    shorter = compact(replay)
    assert shorter["frames"][1]["nodes"] == {"y": {"2": 1.2346}}


def test_replays_survive_the_disk(tmp_path):
    path = save(example(), tmp_path / "replays" / "one.json")
    assert shown(load(path)) == shown(example())
    path.write_text("{")
    with pytest.raises(DataError, match=r"one\.json: not JSON"):
        load(path)
    path.write_text('{"format": "edgewise-replay/1"}')
    with pytest.raises(DataError, match=r"one\.json: replay: 'title' is missing"):
        load(path)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "absent.json")
