"""Stages follow each other by frames or by a metric, and a resumed curriculum goes on where it was."""

import json

import pytest

from edgewise.config.run import Stage, Until
from edgewise.training.curriculum import Curriculum, is_over


class Worlds:
    def __init__(self):
        self.applied = []

    def apply_stage(self, **settings):
        self.applied.append(settings)


STAGES = [
    Stage(name="easy", env={"size": 1}, until={"frames": 30}),
    Stage(name="middle", env={"size": 2}, until={"metric": "evaluation/return", "at_least": 0.5}),
    Stage(name="hard", env={"size": 3}, until={"metric": "loss", "at_most": 0.1, "frames": 1000}),
    Stage(name="last", env={}),
]


def journey(curriculum, rows):
    """The name of the stage after each row."""
    names = []
    for frames, metrics in rows:
        curriculum.advance(frames, metrics)
        names.append(curriculum.stage.name)
    return names


ROWS = [
    (10, {"evaluation/return": 0.9}),
    (30, {"evaluation/return": 0.9}),
    (40, {}),
    (50, {"evaluation/return": 0.4}),
    (60, {}),
    (70, {"evaluation/return": 0.5, "loss": 0.0}),
    (80, {"loss": 0.2}),
    (90, {"loss": 0.1}),
    (9000, {"loss": 0.0}),
]
NAMES = ["easy", "middle", "middle", "middle", "middle", "hard", "hard", "last", "last"]


def test_stages_follow_each_other():
    worlds = Worlds()
    curriculum = Curriculum(STAGES, worlds)
    curriculum.begin()
    assert journey(curriculum, ROWS) == NAMES
    assert worlds.applied == [{"size": 1}, {"size": 2}, {"size": 3}, {}]


def test_frames_count_from_the_beginning_of_the_stage():
    curriculum = Curriculum(STAGES, Worlds())
    assert journey(curriculum, [(30, {}), (31, {"evaluation/return": 1.0}), (1030, {}), (1031, {})]) == [
        "middle",
        "hard",
        "hard",
        "last",
    ]


def test_a_resumed_curriculum_goes_on_where_it_was():
    for stop in range(len(ROWS)):
        first = Curriculum(STAGES, Worlds())
        begun = journey(first, ROWS[:stop])
        worlds = Worlds()
        second = Curriculum(STAGES, worlds)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert worlds.applied == [first.stage.env]
        assert begun + journey(second, ROWS[stop:]) == NAMES


@pytest.mark.parametrize("before", [(), STAGES])
def test_a_run_goes_on_with_a_new_curriculum_from_now_on(before):
    stages, worlds = [Stage(name="x", env={"a": 1}, until={"frames": 30}), Stage(name="y")], Worlds()
    curriculum = Curriculum(stages, worlds)
    curriculum.load_state_dict(Curriculum(before, Worlds()).state_dict(), frames=100)
    assert worlds.applied == [{"a": 1}]
    assert journey(curriculum, [(129, {}), (130, {})]) == ["x", "y"]


def test_without_stages_nothing_happens():
    worlds = Worlds()
    curriculum = Curriculum((), worlds)
    curriculum.begin()
    assert curriculum.advance(10, {}) is None
    assert curriculum.stage is None
    curriculum.load_state_dict(curriculum.state_dict())
    assert worlds.applied == []


def test_a_metric_of_the_stage_before_does_not_end_this_one():
    reached = {"metric": "score", "at_least": 0.5}
    stages = [Stage(name="a", until=reached), Stage(name="b", until=reached), Stage(name="c")]
    rows = [(10, {"score": 0.6}), (20, {}), (30, {"score": 0.4}), (40, {"score": 0.5})]
    assert journey(Curriculum(stages, Worlds()), rows) == ["b", "b", "b", "c"]


def test_the_frames_of_a_resumed_stage_count_from_its_own_beginning():
    stages = [
        Stage(name="a", until={"frames": 30}),
        Stage(name="b", until={"frames": 30}),
        Stage(name="c", until={"frames": 30}),
        Stage(name="d"),
    ]
    rows = [(30, {}), (50, {}), (60, {}), (89, {}), (90, {})]
    names = ["b", "b", "c", "c", "d"]
    for stop in range(len(rows)):
        first, second = Curriculum(stages, Worlds()), Curriculum(stages, Worlds())
        begun = journey(first, rows[:stop])
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        assert begun + journey(second, rows[stop:]) == names


def test_the_last_stage_is_not_left():
    stages = [Stage(name="a", until={"frames": 10}), Stage(name="b", until={"frames": 10})]
    assert journey(Curriculum(stages, Worlds()), [(10, {}), (20, {}), (90, {})]) == ["b", "b", "b"]


@pytest.mark.parametrize(
    ("until", "frames", "metrics", "reached"),
    [
        (Until(frames=10), 9, {}, False),
        (Until(frames=10), 10, {}, True),
        (Until(metric="m", at_least=0.5), 99, {"m": 0.4}, False),
        (Until(metric="m", at_least=0.5), 1, {"m": 0.5}, True),
        (Until(metric="m", at_most=0.0), 1, {"m": 0.0}, True),
        (Until(metric="m", at_most=0.0), 1, {"m": 0.1}, False),
        (Until(metric="m", at_most=0.0), 1, {}, False),
        (Until(frames=10, metric="m", at_least=2.0), 10, {"m": 0.0}, True),
    ],
)
def test_when_a_stage_is_over(until, frames, metrics, reached):
    assert is_over(until, frames, metrics) is reached
