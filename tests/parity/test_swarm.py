"""Recorded trajectories of the reference swarm are replayed to the last digits that were recorded."""

import json
from pathlib import Path

import pytest
from tests.parity.program import LIMIT
from tests.parity.swarm import main, replay

GOLDEN = Path(__file__).parent / "recordings" / "swarm.json"


@pytest.fixture(scope="module")
def cases():
    return json.loads(GOLDEN.read_text())["cases"]


def test_every_recorded_episode_is_replayed(capsys):
    assert main([str(GOLDEN)]) == 0
    assert "agrees" in capsys.readouterr().out


def test_what_is_compared_is_all_that_was_recorded(cases):
    assert {len(case["agents"]) for case in cases} == {3, 7}
    found = replay(cases[0])
    assert set(found) == {"obs", "reward", "nodes", "distances"}
    assert max(found.values()) < LIMIT


def test_what_differs_is_the_rounding_of_the_start(cases):
    """The crowded episode alone differs by more than rounding, as one begun 5e-10 elsewhere would."""
    ours = [max(replay(case).values()) for case in cases]
    assert sorted(ours)[:2] == pytest.approx([5e-10, 5e-10], abs=1e-10)
    moved = json.loads(json.dumps(cases[ours.index(max(ours))]))
    moved["agents"] = [[x + 5e-10, y - 5e-10] for x, y in moved["agents"]]
    assert max(replay(moved).values()) > max(ours) / 4


@pytest.mark.parametrize("name", ["actions", "reward"])
def test_a_fault_in_the_file_is_found(cases, name, tmp_path, capsys):
    wrong = json.loads(json.dumps(cases[0]))
    planted = wrong["steps"][5][name]
    planted[0] = (planted[0] + 1) % 5 if name == "actions" else planted[0] + 1e-5
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"cases": [wrong]}))
    assert main([str(file)]) == 1
    assert "fails" in capsys.readouterr().out
