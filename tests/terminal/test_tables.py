"""Tables fit into the window: main measures first, others on request, everything where there is no window."""

import os

import numpy as np
import pytest

from edgewise.config.errors import ConfigError
from edgewise.evaluation.result import Evaluation
from edgewise.terminal import console
from edgewise.terminal.console import table
from edgewise.terminal.outcome import summary_table


@pytest.fixture
def window(monkeypatch):
    """A function that gives the terminal so many columns."""

    def of(columns):
        monkeypatch.setattr(console, "window", lambda: columns)

    return of


@pytest.fixture
def evaluation():
    rng = np.random.default_rng(0)
    names = ("success", "collisions", "energy", "timeouts")
    return Evaluation(
        env="toy",
        policy="policy",
        frames=0,
        seed=0,
        returns=rng.normal(size=20),
        lengths=np.arange(20),
        finished=np.ones(20, dtype=bool),
        metrics={name: rng.normal(size=20) for name in names},
    )


def test_a_narrow_window_shows_the_main_measure_first_and_says_what_is_hidden(window, evaluation):
    window(90)
    text = summary_table([evaluation], first="energy")
    *lines, note = text.splitlines()
    assert lines[0].split() == ["policy", "episodes", "energy", "return"]
    assert max(map(len, lines)) <= 90
    assert note == "4 more measures: --measures all"


def test_without_a_window_nothing_is_hidden(window, evaluation):
    window(None)
    assert len(summary_table([evaluation]).splitlines()) == 2
    assert len(summary_table([evaluation]).splitlines()[0].split()) == 8


def test_measures_are_shown_as_asked_for(window, evaluation):
    window(40)
    header = summary_table([evaluation], measures=["timeouts", "success"]).splitlines()[0]
    assert header.split() == ["policy", "episodes", "timeouts", "success"]
    assert len(summary_table([evaluation], measures=["all"]).splitlines()[0].split()) == 8
    with pytest.raises(ConfigError, match="--measures: got nothing, expected some of return"):
        summary_table([evaluation], measures=["nothing"])


def test_long_text_of_the_last_column_ends_with_an_ellipsis(window):
    window(30)
    text = table(["name", "what"], [["a", "word " * 20], ["b", "short"]])
    assert [len(line) for line in text.splitlines()][1] == 30
    assert text.splitlines()[1].endswith("…")
    assert text.splitlines()[2] == "b     short"
    window(None)
    assert "…" not in table(["name", "what"], [["a", "word " * 20]])


def test_a_file_has_no_window():
    with open(os.devnull, "w") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(console.sys, "stdout", file)
        assert console.window() is None
