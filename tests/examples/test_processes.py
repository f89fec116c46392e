"""Each example trains, resumes bit for bit after a kill, is evaluated, and plays in a new process."""

import json

import pytest
from tests import processes
from tests.examples.driver import drive

BASELINES = {
    "tsp": {"nearest", "two_opt"},
    "outbreak": {"most_infected"},
    "cover": {"nearest", "paired"},
}
KILLED = -9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `driver.py` has left."""
    place = tmp_path_factory.mktemp("examples")
    processes.run(drive, place, place=place / "driver")
    return place


@pytest.mark.parametrize("name", BASELINES)
def test_it_trains_and_resumes_bit_for_bit(folder, name):
    happened = json.loads((folder / "outcome.json").read_text())[name]
    assert happened == {
        "train": 0,
        "killed": KILLED,
        "refused": 2,
        "resume": 0,
        "differences": [],
        "eval": 0,
        "play": 0,
    }, {file.name: file.read_text()[-2000:] for file in folder.glob(f"{name}-*.err")}


@pytest.mark.parametrize("name", BASELINES)
def test_a_run_folder_alone_imports_no_code(folder, name):
    assert "add --plugin" in (folder / f"{name}-refused.txt.err").read_text()


@pytest.mark.parametrize("name", BASELINES)
def test_it_is_evaluated_beside_its_baselines_at_every_size(folder, name):
    results = json.loads((folder / f"{name}-eval.txt").read_text())["results"]
    sizes = {str(result["settings"]) for result in results}
    assert len(sizes) == 2
    assert {result["policy"] for result in results} >= BASELINES[name]
    assert len(results) == 2 * (1 + len(BASELINES[name]))


@pytest.mark.parametrize("name", BASELINES)
def test_its_report_has_a_replay(folder, name):
    recorded = sorted((folder / f"{name}-whole" / "replays").iterdir())
    assert recorded
    title = json.loads(recorded[-1].read_text())["title"]
    assert (title == "team") == (name == "cover")
    assert (folder / f"{name}-whole" / "report.html").stat().st_size > 10_000
