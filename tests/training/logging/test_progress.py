"""What a watcher shows: a bar on a terminal, lines otherwise; both end where the run ends."""

import builtins
import io
import logging
import signal
import threading

import pytest
from rich.console import Console

from edgewise.training.callbacks import RunInfo
from edgewise.training.interrupt import StopRequest
from edgewise.training.logging import progress
from edgewise.training.logging.progress import (
    NoProgress,
    ProgressBar,
    ProgressLines,
    ShowProgress,
    make_progress,
)


def show(watch):
    watch.start(100, 1000, "walk")
    for frames in (200, 1000):
        watch.update(frames, {"frames/s": "5,000", "return": "0.25", "stage": "easy"})
    watch.close()


def test_a_bar_says_where_the_run_is():
    text = io.StringIO()
    show(ProgressBar(Console(file=text, force_terminal=True, width=160, color_system=None)))
    assert "walk" in text.getvalue()
    assert "1000/1000" in text.getvalue()
    assert "frames/s 5,000, return 0.25, stage easy" in text.getvalue()


@pytest.mark.parametrize("width", [80, 60])
def test_a_narrow_terminal_keeps_bar_count_and_time_left(width):
    text = io.StringIO()
    bar = ProgressBar(Console(file=text, force_terminal=True, width=width, color_system=None))
    bar.start(0, 1_000_000, "a-recipe-with-a-long-name")
    shown = {"return": "-12.3456", "evaluated": "-3.45", "stage": "all graphs", "frames/s": "51,234"}
    bar.update(512_000, shown)
    bar.close()
    lines = [line for line in text.getvalue().splitlines() if "512000/1000000" in line]
    assert lines
    assert "━━━━" in lines[-1]
    assert "-:--:--" in lines[-1]
    assert "return -12" in lines[-1]


def test_lines_come_now_and_then_and_at_the_end(caplog, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with caplog.at_level(logging.INFO, logger=progress.__name__):
        watch = ProgressLines(seconds=10)
        watch.start(0, 1000, "walk")
        for frames in range(100, 1001, 100):
            now[0] += 4
            watch.update(frames, {"return": "0.5"})
        watch.close()
    assert [record.message for record in caplog.records] == [
        "walk: 0 of 1,000 frames",
        "300 of 1,000 frames, 28 s left, return 0.5",
        "600 of 1,000 frames, 16 s left, return 0.5",
        "900 of 1,000 frames, 4 s left, return 0.5",
        "1,000 of 1,000 frames, 0 s left, return 0.5",
    ]


def test_the_watcher_fits_where_errors_go(monkeypatch):
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    assert isinstance(make_progress(), ProgressLines)
    show(NoProgress())


def test_a_signal_is_answered_with_what_is_finished_first(caplog):
    with StopRequest("this epoch") as stop:
        signal.raise_signal(signal.SIGTERM)
    assert stop.received == "SIGTERM"
    assert "SIGTERM: finishing this epoch and saving" in caplog.text


def test_lines_name_what_is_counted(caplog):
    caplog.set_level(logging.INFO)
    lines = ProgressLines(unit="questions")
    lines.start(0, 8, "data")
    lines.update(8, {})
    lines.close()
    assert caplog.messages == ["data: 0 of 8 questions", "8 of 8 questions, 0 s left"]


def test_no_time_is_predicted_before_the_first_frame(caplog):
    caplog.set_level(logging.INFO)
    lines = ProgressLines(seconds=0)
    lines.start(50, 80, "data")
    lines.update(50, {"evaluated": "1.5"})
    assert caplog.messages == ["data: 50 of 80 frames", "50 of 80 frames, evaluated 1.5"]


def test_elsewhere_than_in_the_main_thread_no_signal_is_heard():
    heard = []

    def listen():
        with StopRequest() as stop:
            heard.append(stop.received)

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [None]


@pytest.mark.parametrize(("widgets", "kind"), [(True, ProgressBar), (False, ProgressLines)])
def test_a_notebook_gets_a_bar_if_it_can_draw_one(monkeypatch, widgets, kind):
    class ZMQInteractiveShell:
        """The class by whose name rich recognises a notebook."""

    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    monkeypatch.setattr(progress, "find_spec", lambda name: object() if widgets else None)
    assert isinstance(make_progress(), kind)


@pytest.mark.parametrize("budget", ["minutes", "cpu_minutes"])
def test_a_budget_of_time_is_shown_by_time(budget, tmp_path):
    text, used = io.StringIO(), [0.0]
    show = ShowProgress(ProgressBar(Console(file=text, force_terminal=True, width=160, color_system=None)))
    config = {"training": {"minutes": None, "cpu_minutes": None} | {budget: 2.0}}
    show.on_start(RunInfo(tmp_path, "walk", config, total_frames=10**9, share=lambda: used[0]))
    for used[0], frames in ((0.25, 5_000), (1.01, 20_000)):
        show.on_batch(frames, {"episode/return": 0.5})
    show.on_end(20_000, "complete")
    assert "120/120" in text.getvalue()
    assert "time 100%, frames 20,000" in text.getvalue()
    assert "1000000000" not in text.getvalue()


def test_lines_of_a_budget_of_time_count_seconds(caplog, tmp_path):
    with caplog.at_level(logging.INFO, logger=progress.__name__):
        show = ShowProgress(ProgressLines(unit="s"))
        config = {"training": {"minutes": 1.0}}
        show.on_start(RunInfo(tmp_path, "walk", config, total_frames=10**9, frames=7, share=lambda: 0.5))
        show.on_batch(9_000, {})
        show.on_end(9_000, "complete")
    assert caplog.records[0].message == "walk: 30 of 60 s"
    assert "30 of 60 s, time 50%, frames 9,000" in caplog.records[1].message
