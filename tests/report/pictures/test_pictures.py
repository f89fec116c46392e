"""Pictures of replays: what is drawn where, in SVG and in pixels, and files by their ending."""

import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from edgewise.config.errors import ConfigError
from edgewise.evaluation.replays.files import check
from edgewise.report.pictures.episode import Episode
from edgewise.report.pictures.palette import palette
from edgewise.report.pictures.picture import MARGIN, TITLE, Layout
from edgewise.report.pictures.scene import View
from edgewise.report.pictures.write import array, svg, write

Image = pytest.importorskip("PIL.Image")

LAND = [[[3, 0], [4, 0], [4, 1]]]
SHAPES = ["circle", "square", "diamond", "triangle", "hexagon", "cross", "bullet"]
EVERY_KIND = {
    "format": "edgewise-replay/1",
    "title": "everything <& more>",
    "bounds": [0, 0, 4, 3],
    "fps": 5,
    "layers": [
        {"name": "depth", "kind": "grid", "value": [0, 0.5, 1, 0.2], "columns": 2, "bounds": [0, 0, 1, 1]},
        {"name": "land", "kind": "polygons", "points": LAND, "outline": "ink", "label": ["x"]},
        {"name": "plan", "kind": "polygons", "points": [[[0, 2], [1, 2], [1, 3]]], "closed": False},
        {"name": "wind", "kind": "arrows", "x": [2], "y": [0.5], "dx": [0.5], "dy": [0.2]},
        {
            "name": "all",
            "kind": "nodes",
            "x": [0.5, 1, 1.5, 2, 2.5, 3, 3.5],
            "y": [2, 2, 2, 2, 2, 2, 2],
            "size": 8,
            "shape": SHAPES,
            "color": ["good", "bad", "#123456", 0.7, "accent", "ink", "teal"],
            "heading": 0.5,
            "ring": 0.2,
            "bar": [0, 1, 2, 3, 4, 5, 6],
            "label": ["a", "b", "c", "d", "e", "f", "g"],
            "bar_max": 4,
            "trail": 3,
        },
        {"name": "ways", "kind": "edges", "between": "all", "source": [0], "target": [6], "curve": 0.2},
        {"name": "links", "kind": "edges", "between": "all", "source": [1], "target": [2], "directed": True},
        {"name": "odds", "kind": "bars", "value": [0.2, 0.8], "label": ["left", "right"], "title": "odds"},
    ],
    "frames": [{}, {"all": {"y": {"0": 1.0}}, "odds": {"value": [0.5, 0.5]}}, {"all": {"x": {"0": 0.7}}}],
    "series": [{"name": "distance", "values": [3, None, 1], "unit": "m"}],
    "captions": ["begin", "", "end"],
    "legend": [{"label": "boat", "color": "teal", "shape": "bullet"}, {"label": "way", "shape": "line"}],
    "time": [0, 0.5, 1],
    "time_label": "seconds",
}


def one_node(**fields):
    """A single node, which moves, in a world of given bounds."""
    layer = {"name": "it", "kind": "nodes", "x": [1.0], "y": [1.0], "size": 12, **fields}
    return {
        "format": "edgewise-replay/1",
        "title": "one",
        "bounds": [0, 0, 4, 3],
        "layers": [layer],
        "frames": [{}, {"it": {"x": [3.0]}}],
    }


def pixel_of(replay, x, y):
    """Where a place of the world is in a picture."""
    episode = Episode(replay)
    return View.of(episode, Layout.of(episode, width=640).scene)(x, y)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_kind_of_layer_is_drawn_as_svg(theme):
    root = ElementTree.fromstring(svg(check(EVERY_KIND), frame=1, theme=theme))
    names = {element.tag.partition("}")[2] for element in root.iter()}
    assert {"polygon", "polyline", "circle", "text", "image", "title"} <= names
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {"everything <& more>", "a", "g", "distance", "odds", "boat", "seconds 0.5"} <= texts


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "cross"])
def test_a_node_is_where_it_is_and_has_its_colour(shape):
    replay, tones = check(one_node(shape=shape, color="bad")), palette("light").tones
    for frame, x in ((0, 1.0), (1, 3.0)):
        picture = array(replay, frame=frame)
        here, elsewhere = pixel_of(replay, x, 1.0), pixel_of(replay, 4.0 - x, 1.0)
        assert tuple(picture[round(here[1]), round(here[0])]) == tones["bad"]
        assert tuple(picture[round(elsewhere[1]), round(elsewhere[0])]) == tones["panel"]


def test_y_points_upwards_and_scales_are_equal():
    replay = check(one_node())
    (left, low), (right, high) = pixel_of(replay, 1, 1), pixel_of(replay, 2, 2)
    assert right - left == pytest.approx(low - high)
    assert high < low


def test_nothing_is_drawn_outside_of_the_scene():
    picture = array(check(one_node(ring=50.0, size=400, color="bad")), frame=0)
    paper = np.array(palette("light").tones["paper"])
    assert bool((picture[: TITLE // 4] == paper).all())
    assert bool((picture[:, : MARGIN // 2] == paper).all())


def test_between_frames_positions_and_headings_are_on_their_way():
    replay = one_node(heading=[3.0])
    replay["frames"][1]["it"]["heading"] = [-3.0]
    layer = Episode(check(replay)).at(0.5)["it"]
    assert layer["x"] == [2.0]
    assert layer["heading"][0] == pytest.approx(np.pi, abs=1e-6), "the shorter way round"
    assert Episode(check({**replay, "smooth": False})).at(0.5)["it"]["x"] == [1.0]


def test_the_area_holds_everything_where_no_bounds_are_given():
    replay = one_node(unit="world", size=0.5)
    del replay["bounds"]
    left, bottom, right, top = Episode(check(replay)).area
    assert left < 0.5
    assert right > 3.5
    assert bottom < 0.5
    assert top > 1.5


def test_files_are_written_by_their_ending(tmp_path):
    replay, seen = check(EVERY_KIND), []
    write(replay, tmp_path / "a.svg")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().get("width") == "640"
    write(replay, tmp_path / "a.png", frame=0, width=400)
    assert Image.open(tmp_path / "a.png").width == 400
    write(replay, tmp_path / "new" / "a.gif", fps=10, progress=lambda *each: seen.append(each))
    picture = Image.open(tmp_path / "new" / "a.gif")
    assert (picture.n_frames, picture.info["duration"], picture.info["loop"]) == (3, 100, 0)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_colours_of_a_gif_are_those_of_its_frames(tmp_path):
    replay = one_node(color="good", size=20)
    replay["frames"][1]["it"]["color"] = "orange"
    write(check(replay), tmp_path / "a.gif")
    picture, tones = Image.open(tmp_path / "a.gif"), palette("light").tones
    for frame, x, tone in ((0, 1.0, "good"), (1, 3.0, "orange")):
        picture.seek(frame)
        found = picture.convert("RGB").getpixel(tuple(map(round, pixel_of(check(replay), x, 1.0))))
        assert np.abs(np.array(found) - tones[tone]).max() <= 12


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")
def test_a_video_is_written(tmp_path):
    assert write(check(EVERY_KIND), tmp_path / "a.mp4").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.jpeg", {}, "expected a file that ends with .svg, .png, .gif, .mp4"),
        ("a.png", {"frame": 3}, "the episode has 3 frames, 0 to 2"),
        ("a.svg", {"frame": -4}, "the episode has 3 frames, 0 to 2"),
        ("a.gif", {"frame": 0}, "shows the whole episode"),
    ],
)
def test_what_cannot_be_is_refused(name, options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        write(check(EVERY_KIND), tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_a_missing_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="needs the program ffmpeg") as error:
        write(check(EVERY_KIND), tmp_path / "a.mp4")
    assert "write a .gif file" in error.value.hint


def test_a_bare_picture_is_the_scene_alone():
    episode = Episode(EVERY_KIND)
    layout = Layout.of(episode, width=200, bare=True)
    assert layout.scene == (0, 0, 200, layout.height)
    assert layout.height == 150  # the bounds are 4 wide and 3 high
    assert "everything" in svg(EVERY_KIND, width=200).partition("</title>")[2]
    assert "everything" not in svg(EVERY_KIND, width=200, bare=True).partition("</title>")[2]


def test_a_given_height_is_kept(tmp_path):
    written = write(EVERY_KIND, tmp_path / "a.png", width=300, height=280)
    assert Image.open(written).size == (300, 280)
