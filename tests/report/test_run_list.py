"""A page that lists runs: one row each, sorted by a click, whatever state their folders are in."""

import json
import re

import pytest
from tests.report.browser import drive, needs_chromium
from tests.report.synthetic import make_run

from edgewise.cli.main import main
from edgewise.report.run_list import has_runs, write_run_list


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    make_run(folder / "walk-1", rows=3, evaluations=1)
    make_run(folder / "walk-2", rows=3, evaluations=1, seed=7)
    study = folder / "walk-seeds-1"
    make_run(study / "runs" / "seed-0", rows=3, evaluations=1)
    (study / "study.json").write_text('{"kind": "seeds"}')
    (study / "report.html").touch()
    broken = make_run(folder / "walk-3", rows=3, evaluations=1)
    (broken / "config.json").write_text("{")
    for name, value in (("walk-1", -10.5), ("walk-2", -9.25)):
        with open(folder / name / "events.jsonl", "a") as file:
            for event in (
                {"event": "evaluation", "evaluation/return": value},
                {"event": "stop", "reason": "SIGTERM"},
            ):
                file.write(json.dumps({"time": "2026-01-05T10:00:00Z", "frames": 64, **event}) + "\n")
    (folder / "link").symlink_to(folder / "walk-1")
    return folder


def rows_of(page):
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    return [section["blocks"][0]["rows"] for section in data["sections"]]


def test_every_run_and_study_has_a_row(runs):
    listed, studies = rows_of(write_run_list(runs))
    assert [row[0]["text"] for row in listed] == ["walk-1", "walk-2", "walk-3", "walk-seeds-1/runs/seed-0"]
    first, second, broken, _ = listed
    assert (first[1], first[2], first[3]["text"], first[4:7]) == (
        "walk-ppo",
        0,
        "stopped by SIGTERM",
        [64, "return", -10.5],
    )
    assert (second[2], second[6]) == (7, -9.25)
    assert first[0]["href"] == "walk-1"
    assert broken[3] == {"text": "config.json cannot be read", "state": "bad"}
    assert studies == [[{"text": "walk-seeds-1", "href": "walk-seeds-1/report.html"}, "seeds", 1, 1]]


def test_the_verb_lists_a_folder_and_reports_a_run(runs, tmp_path, capsys):
    assert main(["report", str(runs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(runs / "index.html")
    assert main(["report", str(runs), "--out", str(tmp_path / "list.html")]) == 0
    assert rows_of(tmp_path / "list.html")[0][0][0]["href"] == "runs/walk-1"
    assert not has_runs(runs / "walk-1")
    assert main(["report", str(tmp_path / "empty")]) == 2


@needs_chromium
def test_a_click_on_a_column_sorts_and_another_turns_the_order(runs):
    script = """
      const rows = () => [...document.querySelectorAll("tbody")[0].rows];
      const names = () => rows().map((row) => row.cells[0].innerText).join(" ");
      const buttons = [...document.querySelectorAll("th button")];
      const column = buttons.find((button) => button.innerText === "value");
      const seen = [names()];
      column.click(); seen.push(names());
      column.click(); seen.push(names());
      document.title = seen.join("|");
    """
    seen = drive(write_run_list(runs), script)
    before, rising, falling = re.search(r"<title>(.*?)</title>", seen.dom)[1].split("|")
    assert before.startswith("walk-1 walk-2")
    assert rising.startswith("walk-1 walk-2 ")
    assert falling.startswith("walk-2 walk-1 ")
    assert rising.endswith(falling.partition("walk-1 ")[2])  # rows without a value stay last
