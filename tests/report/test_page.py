"""The page as a file: it needs nothing from outside, and nothing in a run can become markup or code in it."""

import base64
import hashlib
import html.parser
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.browser import drive, needs_chromium, visit
from tests.report.synthetic import make_run, write_csv

import edgewise.report
from edgewise.config.errors import DataError
from edgewise.evaluation.replays.files import load, save
from edgewise.evaluation.result import Evaluation
from edgewise.report.page import OVERVIEW_SCRIPTS, SCRIPTS, write_report
from edgewise.runs.format import FORMAT

ASSETS = Path(edgewise.report.__file__).parent / "assets"
HOSTILE = (
    "</script><img src=x onerror=\"document.title='taken'\">"
    "<script>document.title='taken'</script>\u2028${'a'}"
)


class Outline(html.parser.HTMLParser):
    """Elements of a page with their attributes, and the text of its scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.raw, self._open = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs).get("type")) if tag in ("script", "style") else None

    def handle_data(self, data):
        if self._open:
            self.raw[self._open] = self.raw.get(self._open, "") + data

    def handle_endtag(self, tag):
        self._open = None

    @property
    def data(self):
        return json.loads(self.raw["script", "application/json"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "walk-0")


@pytest.fixture(scope="module")
def report(run):
    return write_report(run)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run in which every name and text is an attack."""
    folder = make_run(tmp_path_factory.mktemp("runs") / "<img src=x onerror=alert(1)>", rows=30)
    config = {"recipe": HOSTILE, "name": HOSTILE, HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}}
    config["evaluation"] = {"metric": HOSTILE}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "versions.json").write_text(
        json.dumps({HOSTILE: HOSTILE, "edgewise": HOSTILE, "format": FORMAT})
    )
    rows = [{"frames": 100 * n, "stage": HOSTILE, HOSTILE: n, f"health/{HOSTILE}": n} for n in range(9)]
    write_csv(folder / "metrics.csv", rows)
    events = [{"event": HOSTILE, "time": HOSTILE, "frames": 3, HOSTILE: HOSTILE}]
    events.append({"event": "stop", "reason": HOSTILE})
    (folder / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    for path in (folder / "evaluations").glob("*.json"):
        entry = json.loads(path.read_text()) | {"policy": HOSTILE, "settings": {HOSTILE: HOSTILE}}
        entry["metrics"][HOSTILE] = entry["returns"]
        path.write_text(json.dumps(entry))
    path = folder / "replays" / "000000200000-0.json"
    replay = load(path) | {
        "title": HOSTILE,
        "caption": HOSTILE,
        "time_label": HOSTILE,
        "facts": {HOSTILE: HOSTILE},
    }
    replay["captions"] = [HOSTILE] * len(replay["frames"])
    replay["legend"], replay["marks"] = [{"label": HOSTILE}], [{"frame": 1, "text": HOSTILE}]
    replay["series"] = [{"name": HOSTILE, "values": [1] * len(replay["frames"]), "unit": HOSTILE}]
    save(replay, path)
    (folder / "evaluations" / "broken.json").write_text('{"format": "</script><img src=x onerror=alert(2)>"}')
    return folder


def test_the_page_stands_alone(report):
    page = report.read_text()
    outline = Outline(page)
    assert report.name == "report.html"
    assert [tag for tag, attributes in outline.elements if "src" in attributes] == []
    assert [attributes for tag, attributes in outline.elements if tag == "link"] == [
        {"rel": "icon", "href": "data:,"}
    ]
    own = "".join(
        (ASSETS / name).read_text() for name in (*SCRIPTS, *OVERVIEW_SCRIPTS, "style.css", "page.html")
    )
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", own) == []
    assert re.findall(r"url\(|@import|\bimport\(|fetch\(|XMLHttpRequest|WebSocket", own) == []


def test_only_our_script_and_style_may_run(report):
    outline = Outline(report.read_text())
    policy = next(
        a["content"] for tag, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    for key, name in ((("script", None), "script-src"), (("style", None), "style-src")):
        digest = base64.b64encode(hashlib.sha256(outline.raw[key].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy


def test_no_asset_writes_markup():
    assert {path.name for path in ASSETS.glob("*.js")} == {*SCRIPTS, *OVERVIEW_SCRIPTS}
    for name in {*SCRIPTS, *OVERVIEW_SCRIPTS}:
        text = (ASSETS / name).read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        ), name
        assert text.startswith("// "), f"{name} does not say why it exists"
        assert len(text.splitlines()) <= 300, name


def test_hostile_strings_stay_strings(hostile):
    page = write_report(hostile).read_text()
    outline = Outline(page)
    assert "img" not in [tag for tag, _ in outline.elements]
    assert [tag for tag, _ in outline.elements].count("script") == 2
    assert outline.data["configs"][0]["config"]["recipe"] == HOSTILE
    assert "<" not in outline.raw["script", "application/json"]
    assert "\u2028" not in page


@pytest.mark.parametrize(
    "missing",
    [
        ["config.json", "versions.json", "events.jsonl", "timing.csv"],
        ["metrics.csv"],
        ["evaluations"],
        ["replays"],
        ["config.json", "versions.json", "events.jsonl", "metrics.csv", "timing.csv", "replays"],
    ],
    ids=", ".join,
)
def test_parts_may_be_missing(tmp_path, missing):
    folder = make_run(tmp_path / "run", rows=9, evaluations=3)
    for name in missing:
        if (folder / name).is_dir():
            for path in (folder / name).iterdir():
                path.unlink()
            (folder / name).rmdir()
        else:
            (folder / name).unlink()
    data = Outline(write_report(folder).read_text()).data
    assert all(note.startswith(tuple(missing)) for note in data["notes"])
    assert bool(data["notes"]) == bool({"evaluations", "replays"} & set(missing))
    assert bool(data["training"]) == ("metrics.csv" not in missing)
    assert bool(data["evaluation"]) == ("evaluations" not in missing)
    assert bool(data["replays"]) == ("replays" not in missing)


def test_broken_parts_are_noted_and_left_out(tmp_path):
    folder = make_run(tmp_path / "run", rows=9, evaluations=3)
    (folder / "config.json").write_text("{")
    (folder / "versions.json").write_text("[]")
    (folder / "replays" / "000000200000-0.json").write_text('{"format": "edgewise-replay/1"}')
    (folder / "evaluations" / "000000000000.json").write_text("7")
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"event": "st')
    with (folder / "metrics.csv").open("a") as file:
        file.write("200000,10,lar")
    data = Outline(write_report(folder).read_text()).data
    assert len(data["notes"]) == 4
    assert {note.split()[0].strip(":") for note in data["notes"]} == {
        "config.json",
        "versions.json",
        "000000000000.json",
        "000000200000-0.json",
    }
    assert len(data["replays"]) == 1
    assert len(data["health"]["runs"][0]["events"]) == 4
    assert data["training"][0]["lines"][0]["x"][-1] == 200_000


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such run folder"):
        write_report(tmp_path / "absent")
    with pytest.raises(DataError, match="not a run folder"):
        write_report(tmp_path)


def test_a_report_is_written_whole_or_not(run, tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        write_report(run, target=tmp_path / "absent" / "report.html")
    target = write_report(run, target=tmp_path / "elsewhere.html")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_a_word_on_the_console(report, scheme):
    seen = visit(report, f"--blink-settings=preferredColorScheme={int(scheme == 'light')}", place="#frame=40")
    assert seen.console == []
    assert 'data-ready="true"' in seen.dom
    assert seen.dom.count('<div class="plot">') == seen.dom.count('<div class="plot"><svg')
    for section in ("Learning", "Against baselines", "Episode", "Health", "Configuration"):
        assert f"<h2>{section}</h2>" in seen.dom
    assert "step 40 of 89" in seen.dom
    assert re.search(r'<path class="curve" d="M[\d.,ML]+" stroke="var\(--accent\)"', seen.dom)
    assert "shortest_path" in seen.dom
    assert ">small</text>" in seen.dom


@needs_chromium
def test_hostile_strings_do_nothing_in_a_browser(hostile):
    seen = visit(write_report(hostile))
    assert seen.console == []
    assert 'data-ready="true"' in seen.dom
    body = seen.dom.split("<main", 1)[1].split("</main>", 1)[0]
    assert "<img" not in body
    assert "<script" not in body
    assert "taken" not in re.search(r"<title>.*?</title>", seen.dom, re.DOTALL)[0]
    assert body.count("&lt;/script&gt;&lt;img src=x onerror=") > 20, "the strings must be there, as text"


@needs_chromium
def test_it_opens_when_little_is_there(tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    write_csv(folder / "metrics.csv", [{"frames": 1, "loss": 0.5}, {"frames": 2, "loss": ""}])
    seen = visit(write_report(folder))
    assert seen.console == []
    assert 'data-ready="true"' in seen.dom
    assert "<h2>Episode</h2>" not in seen.dom


@needs_chromium
def test_several_runs_open_side_by_side(run, tmp_path):
    others = [make_run(tmp_path / f"walk-{seed}", seed=seed, rows=40) for seed in (1, 2)]
    rival = make_run(tmp_path / "rival", seed=3, rows=40)
    config = json.loads((rival / "config.json").read_text()) | {"recipe": "rival"}
    (rival / "config.json").write_text(json.dumps(config))
    path = write_report(run, *others, rival, target=tmp_path / "all.html")
    data = Outline(path.read_text()).data
    assert [line["label"] for line in data["evaluation"][0]["lines"]] == ["walk-ppo", "rival"]
    assert data["comparison"]["rows"][0]["seeds"] == 3
    seen = visit(path)
    assert seen.console == []
    assert "4 runs" in seen.dom


def test_evaluations_of_other_sizes_become_a_table(tmp_path):
    folder = make_run(tmp_path / "run", rows=9, evaluations=3)
    entry = json.loads((folder / "evaluations" / "000000200000.json").read_text())
    Evaluation.from_json(entry | {"settings": {"num_nodes": 50}}).save(folder / "evaluations" / "large.json")
    data = Outline(write_report(folder).read_text()).data
    assert [row["settings"] for row in data["sweep"]] == ["num_nodes = 50"]
    assert len(data["evaluation"][0]["lines"][0]["x"]) == 3


# Virtual time draws no frames of its own: a timer stands in for the screen.
DRIVER = """
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
window.cancelAnimationFrame = clearTimeout;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const until = async (truth) => {
  for (let turn = 0; turn < 200 && !truth(); turn += 1) await wait(20);
  return truth();
};
const find = (selector) => document.querySelector(selector);
const said = [];
const frame = () => Number(find(".replay input").value);
find(".play").click();
said.push(["playing", (await until(() => frame() > 5)) && find(".play").textContent === "Pause"]);
find(".play").click();
const rest = frame();
await wait(300);
said.push(["paused", frame() === rest]);
find(".replay input").value = "7";
find(".replay input").dispatchEvent(new Event("input"));
said.push(["scrubbed", find(".time").textContent === "step 7 of 89"]);
find(".scene").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
said.push(["stepped", frame() === 8]);
find(".scene").dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
said.push(["at the end", frame() === 89]);
const speed = find(".replay select");
speed.value = "8";
speed.dispatchEvent(new Event("change"));
find(".play").click();
said.push(["plays from the start again", await until(() => frame() > 3 && frame() < 89)]);
const picture = () => find(".scene").toDataURL();
const before = picture();
find("header button").click();
said.push(["other light", document.documentElement.dataset.theme !== undefined && picture() !== before]);
document.querySelectorAll(".episodes button")[1].click();
await wait(100);
said.push(["other episode", find(".time").textContent === "step 0 of 11"]);
const plot = find("#learning svg");
const box = plot.getBoundingClientRect();
const middle = { clientX: box.left + box.width / 2, clientY: box.top + 50 };
plot.dispatchEvent(new PointerEvent("pointermove", middle));
said.push(["told", !find("#learning .tip").hidden && find("#learning .tip").textContent.includes("frames")]);
document.body.dataset.said = said.map(([name, truth]) => `${name}: ${truth}`).join("; ");
"""


@needs_chromium
def test_the_player_plays_pauses_scrubs_and_steps(report):
    seen = drive(report, DRIVER)
    assert seen.console == []
    said = re.search(r'data-said="([^"]*)"', seen.dom)[1].split("; ")
    assert len(said) == 9
    assert [line for line in said if not line.endswith(": true")] == []


AREA = """
const layer = { name: "cells", kind: "nodes", x: [0, 4], y: [1, 1] };
const areaWith = (fields) => areaOf({}, [{ cells: { ...layer, ...fields } }]).map((end) => end.toFixed(2));
const layers = [{ unit: "world", size: 1 }, { unit: "world", size: [0.5, 2] }, { size: 9 }];
document.title = layers.map((fields) => areaWith(fields).join(" ")).join("|");
"""


@needs_chromium
def test_nodes_with_sizes_in_the_world_are_not_cut_off(tmp_path):
    """The area holds every node with its radius, and 4 % on each side; sizes in pixels have their padding."""
    scripts = "".join((ASSETS / name).read_text() for name in ("basics.js", "replay_state.js"))
    page = tmp_path / "area.html"
    page.write_text(f"<!doctype html><body><script>{scripts}{AREA}</script></body>")
    one, each, pixels = re.search(r"<title>(.*?)</title>", visit(page).dom)[1].split("|")
    assert one == "-1.24 -0.08 5.24 2.08"
    assert each == "-0.76 -1.16 6.26 3.16"
    assert pixels == "-0.16 0.00 4.16 2.00"


FRAMES = """
const line = (...x) => ({ x, y: x, low: x, high: x });
const charts = [
  { lines: [line(512)], levels: [], behind: line(128, 384) },
  { lines: [line(0)], levels: [] },
  { lines: [line(100, 200)], levels: [], behind: line(100, 300) },
];
const ends = charts.map((chart) => frameOf(chart, { width: 400, height: 200, end: null }));
document.title = ends.map(({ first, end }) => `${first} ${end}`).join("|");
"""


@needs_chromium
def test_a_chart_begins_at_no_frames_and_holds_every_curve(tmp_path):
    """Also where there is a single evaluation, at the end of the run."""
    scripts = "".join((ASSETS / name).read_text() for name in ("basics.js", "chart_tools.js", "chart.js"))
    page = tmp_path / "chart.html"
    page.write_text(f"<!doctype html><body><script>{scripts}{FRAMES}</script></body>")
    assert re.search(r"<title>(.*?)</title>", visit(page).dom)[1] == "0 512|0 1|0 300"


LABELS = """
const flat = (value) => ({ x: [0, 100], y: [value, value], low: [value, value], high: [value, value] });
const named = [["random", 0.62], ["shortest", 0.6], ["third", 0.61]];
const levels = named.map(([label, estimate]) => ({ label, estimate }));
const scales = { x: (x) => 3 * x, y: (y) => 100 - 100 * y };
const frame = { left: 0, right: 300, top: 0, bottom: 100, beside: false, ...scales };
const found = levelLabels({ levels, lines: [flat(0.1)] }, frame);
const place = (label) => ["x", "y", "text-anchor"].map((name) => label.getAttribute(name)).join(" ");
document.title = found.map(place).join("|");
"""


@needs_chromium
def test_labels_of_close_levels_are_not_on_each_other(tmp_path):
    scripts = "".join((ASSETS / name).read_text() for name in ("basics.js", "chart_tools.js", "chart.js"))
    page = tmp_path / "labels.html"
    page.write_text(f"<!doctype html><body><script>{scripts}{LABELS}</script></body>")
    labels = re.search(r"<title>(.*?)</title>", visit(page).dom)[1].split("|")
    places = [(anchor, float(y)) for _, y, anchor in map(str.split, labels)]
    assert len(places) == 3
    for one, other in itertools.combinations(places, 2):
        assert one[0] != other[0] or abs(one[1] - other[1]) >= 13


@needs_chromium
def test_before_and_after_training_are_shown_side_by_side(report):
    script = """
      const tabs = [...document.querySelectorAll(".episodes button")];
      tabs.at(-1).click();
      const names = [...document.querySelectorAll(".pair > div > h3")].map((name) => name.innerText);
      const drawn = document.querySelectorAll(".pair canvas.scene").length;
      tabs[0].click();
      const left = document.querySelectorAll(".pair").length;
      document.title = [tabs.at(-1).innerText, ...names, drawn, left].join("|");
    """
    seen = drive(report, script)
    assert re.search(r"<title>(.*?)</title>", seen.dom)[1].split("|") == [
        *("before and after training", "after 0 frames", "after 200 k frames", "2", "0"),
    ]
    assert seen.console == []


def test_a_report_is_written_without_torch(run, tmp_path):
    code = (
        "import sys; from edgewise.report.page import write_report; "
        "write_report(sys.argv[1], target=sys.argv[2]); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(run), str(tmp_path / "report.html")], check=True)


TOOLS = """
const said = [];
const wait = () => new Promise((done) => setTimeout(done, 60));
const chart = document.querySelector("#learning .chart");
const label = () => chart.querySelector("svg text").textContent;
const shape = () => chart.querySelector("path.curve").getAttribute("d");
const before = [label(), shape()];
document.getElementById("smoothing").value = "0.9";
document.getElementById("smoothing").dispatchEvent(new Event("change"));
await wait();
said.push(`smoothing changes the line: ${shape() !== before[1]}`);
document.getElementById("smoothing").value = "0";
document.getElementById("smoothing").dispatchEvent(new Event("change"));
await wait();
said.push(`and back: ${shape() === before[1]}`);
const kept = [];
URL.createObjectURL = (blob) => { kept.push(blob); return "#"; };
for (const button of chart.querySelectorAll("button.save")) button.click();
const [svg, csv] = await Promise.all(kept.map((blob) => blob.text()));
const alone = svg.startsWith("<svg") && svg.includes("www.w3.org/2000/svg") && !svg.includes("var(");
said.push(`svg stands alone: ${alone}`);
const [header, ...rows] = csv.trim().split("\\n");
said.push(`csv has the points: ${rows.length > 1 && header.split(",").length === 4}`);
document.body.dataset.said = said.join("; ");
"""


@needs_chromium
def test_charts_are_smoothed_and_saved(report):
    seen = drive(report, TOOLS)
    assert seen.console == []
    said = re.search(r'data-said="([^"]*)"', seen.dom)[1].split("; ")
    assert len(said) == 4
    assert [line for line in said if not line.endswith(": true")] == []


SCALES = """
chartView.log = true;
const powers = logTicksOf(0.5, 2000).join(" ");
const middle = logScaleOf(1, 100, 0, 2)(10).toFixed(3);
const found = [isLogarithmic([1, 10]), isLogarithmic([0, 1]), middle, powers];
document.title = [...found, smoothed([2, null, 4], 0.5).map((value) => value && value.toFixed(3))].join("|");
"""


@needs_chromium
def test_logarithmic_axes_and_smoothing(tmp_path):
    scripts = "".join((ASSETS / name).read_text() for name in ("basics.js", "chart_tools.js"))
    page = tmp_path / "scales.html"
    page.write_text(f"<!doctype html><body><script>{scripts}{SCALES}</script></body>")
    found = re.search(r"<title>(.*?)</title>", visit(page).dom)[1].split("|")
    assert found == ["true", "false", "1.000", "1 10 100 1000", "2.000,,3.333"]
