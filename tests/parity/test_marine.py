"""Recorded trajectories of the reference's boats are replayed to the last digits that were recorded."""

import json
from pathlib import Path

import pytest
from tests.parity.marine import main, replay
from tests.parity.program import LIMIT

GOLDEN = Path(__file__).parent / "recordings" / "marine.json"


@pytest.fixture(scope="module")
def cases():
    return json.loads(GOLDEN.read_text())["cases"]


def test_every_recorded_episode_is_replayed(capsys):
    assert main([str(GOLDEN)]) == 0
    assert "agrees" in capsys.readouterr().out


def test_what_differs_is_the_rounding_of_what_was_recorded(cases):
    found = [replay(case) for case in cases]
    assert set(found[0]) >= {"position", "heading", "velocity", "velocity_water", "thrust", "reward"}
    assert {"self", "objects", "outcome"} <= set(found[0])
    assert max(max(case.values()) for case in found) < 1e-9 < LIMIT


def test_the_recordings_have_what_can_go_wrong(cases):
    robots = [robot for case in cases for step in case["steps"] for robot in step["robots"] if robot]
    assert {case["action_type"] for case in cases} == {"continuous", "discrete"}
    assert any(case["cores"] for case in cases)
    assert any(robot["outcome"] == "collision" for robot in robots)
    assert any(len(robot["objects"]) == 5 for robot in robots)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        (("actions", 0), lambda action: [1.0 - action[0], action[1]]),
        (("robots", 0, "reward"), lambda reward: reward + 1e-5),
        (("robots", 0, "pose", 2), lambda heading: heading + 1e-5),
        (("robots", 0, "self_obs", 4), lambda rate: rate + 1e-5),
        (("robots", 0, "outcome"), lambda _: "collision"),
        (("robots", 1, "objects"), lambda objects: objects[1:]),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_a_fault_in_the_file_is_found(cases, path, change, tmp_path, capsys):
    wrong = json.loads(json.dumps(cases[-1]))
    place = wrong["steps"][5]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"cases": [wrong]}))
    assert main([str(file)]) == 1
    assert "fails" in capsys.readouterr().out
