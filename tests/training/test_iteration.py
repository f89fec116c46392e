"""Schedules move the numbers of an algorithm; what cannot be moved is said."""

import pytest

from edgewise.config.errors import ConfigError
from edgewise.config.schedules import Constant, Cosine, Linear, Piecewise
from edgewise.training.iteration import apply_schedules


class Recorder:
    def __init__(self):
        self.values = {}

    def set_scalar(self, name, value):
        if name == "unknown":
            raise ValueError("'unknown' is no number; there are clip, rate")
        self.values[name] = value


def test_each_kind_gives_its_closed_form():
    schedules = {
        "rate": Linear(start=1.0, end=0.0),
        "clip": Cosine(start=2.0, end=1.0),
        "weight": Constant(value=0.25),
        "steps": Piecewise(points=((0, 1.0), (50, 3.0)), interpolate=False),
    }
    algorithm = Recorder()
    values = apply_schedules(algorithm, schedules, frames=25, total_frames=100)
    half_root = 2**-0.5
    expected = {"rate": 0.75, "clip": 1.5 + 0.5 * half_root, "weight": 0.25, "steps": 1.0}
    assert values == algorithm.values
    assert values == pytest.approx(expected)


def test_mistakes_name_the_field():
    with pytest.raises(ConfigError, match=r"training\.schedules\.unknown: 'unknown' is no number"):
        apply_schedules(Recorder(), {"unknown": Constant(value=1.0)}, frames=0, total_frames=1)
    assert apply_schedules(Recorder(), {}, frames=0, total_frames=1) == {}
