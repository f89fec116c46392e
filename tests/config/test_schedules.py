"""Schedules against their closed forms, and what holds for every one of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from edgewise.config.schedules import Constant, Cosine, Linear, Piecewise, Schedule

finite = st.floats(-1e6, 1e6, allow_nan=False)
frames = st.integers(0, 10**7)


def test_linear_goes_straight_and_then_stays():
    schedule = Linear(start=1.0, end=0.2)
    assert [schedule.at(at, 100) for at in (0, 25, 50, 100, 200)] == pytest.approx([1.0, 0.8, 0.6, 0.2, 0.2])


def test_linear_may_end_before_the_run():
    assert Linear(start=4.0, end=0.0, frames=50).at(25, 1000) == 2.0


def test_cosine_is_half_a_wave():
    schedule = Cosine(start=3.0, end=1.0)
    expected = [1.0 + 2.0 * (1 + math.cos(math.pi * share)) / 2 for share in (0, 0.25, 0.5, 0.75, 1)]
    assert [schedule.at(at, 400) for at in (0, 100, 200, 300, 400)] == pytest.approx(expected)


def test_cosine_warms_up_from_zero():
    schedule = Cosine(start=1.0, warmup_frames=10)
    assert [schedule.at(at, 110) for at in (0, 5, 10, 60, 110)] == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])


def test_piecewise_joins_its_points_or_steps_between_them():
    points = ((10, 1.0), (20, 3.0), (30, 0.0))
    assert [Piecewise(points=points).at(at, 99) for at in (0, 10, 15, 20, 25, 40)] == [
        1.0,
        1.0,
        2.0,
        3.0,
        1.5,
        0.0,
    ]
    steps = Piecewise(points=points, interpolate=False)
    assert [steps.at(at, 99) for at in (0, 10, 19, 20, 29, 30)] == [1.0, 1.0, 1.0, 3.0, 3.0, 0.0]


@given(start=finite, end=finite, at=frames, total=st.integers(1, 10**7))
def test_a_schedule_never_leaves_its_ends(start, end, at, total):
    low, high = min(start, end), max(start, end)
    slack = 1e-9 * max(abs(low), abs(high), 1.0)
    for schedule in (Linear(start=start, end=end), Cosine(start=start, end=end)):
        assert low - slack <= schedule.at(at, total) <= high + slack


@given(value=finite, at=frames)
def test_constant_is_constant(value, at):
    assert Constant(value=value).at(at, 1) == value


@pytest.mark.parametrize("points", [(), ((5, 1.0), (5, 2.0)), ((5, 1.0), (4, 2.0))])
def test_points_must_rise(points):
    with pytest.raises(ValidationError):
        Piecewise(points=points)


def test_kinds_are_told_apart():
    adapter = TypeAdapter(Schedule)
    for kind, more in (("constant", {"value": 1.0}), ("linear", {"start": 1.0}), ("cosine", {"start": 1.0})):
        assert adapter.validate_python({"kind": kind, **more}).kind == kind
