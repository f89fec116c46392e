"""Callbacks: they get every number, change nothing, may fail, may stop the run, and hear of every end."""

import csv
import errno
import json
import logging
import os
import random
import signal

import numpy as np
import pytest
import torch
from tests.cli.conftest import FLAGS
from tests.runs.states import same
from tests.training.toys import run, toy_config, toy_parts

import edgewise as ew
from edgewise.cli.main import main
from edgewise.config.errors import CheckpointError, ConfigError, Interrupted, NumericalStop
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder
from edgewise.training.callbacks import Callback, Callbacks, RunInfo, StopTraining, checked_callbacks
from edgewise.training.logging.event_log import EventLog
from edgewise.training.logging.metrics_log import MetricsLog
from edgewise.training.logging.progress import ProgressLines, ShowProgress
from edgewise.training.logging.tensorboard import TensorBoardLog

HOOKS = ("on_start", "on_batch", "on_evaluation", "on_stage", "on_checkpoint", "on_best", "on_end")


class Recorder(Callback):
    """Keeps every call."""

    def __init__(self):
        self.calls = []

    def of(self, hook):
        return [arguments for name, arguments in self.calls if name == hook]


def _keeping(hook):
    return lambda self, *arguments: self.calls.append((hook, arguments))


for _hook in HOOKS:
    setattr(Recorder, _hook, _keeping(_hook))


def failing(hook, error):
    """A callback one hook of which raises an error each time."""
    callback, calls = Recorder(), []

    def fail(*arguments):
        calls.append(arguments)
        raise error

    setattr(callback, hook, fail)
    callback.failures = calls
    return callback


def rows(folder):
    with open(folder.path / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def events(folder, kind):
    lines = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    return [event for event in lines if event["event"] == kind]


def files(folder):
    """Every file of a run that does not depend on the time, with its bytes."""
    names = ("metrics.csv", "config.json", "evaluations/*", "replays/*", "checkpoints/*/*.safetensors")
    found = [path for name in names for path in folder.path.glob(name)]
    return {str(path.relative_to(folder.path)): path.read_bytes() for path in sorted(found)}


def state(folder):
    found = checkpoint.load(checkpoint.latest(folder.checkpoints))
    return {name: part for name, part in found.items() if name != "clock"}


def staged(**settings):
    stages = [{"name": "a", "until": {"frames": 40}}, {"name": "b", "env": {"scale": 3.0}}]
    return toy_config(training={"curriculum": stages}, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without callbacks that was left alone."""
    return run(tmp_path_factory.mktemp("whole") / "run", toy_config())


@pytest.fixture(scope="module")
def whole_staged(tmp_path_factory):
    """The same with stages."""
    return run(tmp_path_factory.mktemp("staged") / "run", staged())


def test_a_callback_gets_every_number(tmp_path):
    recorder = Recorder()
    folder = run(tmp_path / "run", staged(), callbacks=[recorder])
    written = rows(folder)
    got = [metrics for _, metrics in recorder.of("on_batch")]
    assert len(got) == len(written) == 7
    for row, metrics in zip(written, got, strict=True):
        assert {name: cell for name, cell in row.items() if cell} == {
            name: value if isinstance(value, str) else repr(value) for name, value in metrics.items()
        }
    assert [frames for frames, _ in recorder.of("on_batch")] == [metrics["frames"] for metrics in got]
    assert {type(value) for metrics in got for value in metrics.values()} == {int, float, str}


def test_a_callback_gets_every_event(tmp_path):
    recorder = Recorder()
    folder = run(tmp_path / "run", staged(), callbacks=[recorder])
    assert recorder.calls[0][0] == "on_start"
    assert recorder.calls[-1][0] == "on_end"
    (started,) = recorder.of("on_start")[0]
    assert (started.path, started.name, started.total_frames) == (folder.path, "toy", 96)
    assert (started.frames, started.checkpoint) == (0, None)
    assert started.config == staged().to_plain()
    assert started.seconds().keys() == {"collecting", "learning", "evaluating"}
    assert recorder.of("on_stage") == [(event["frames"], event["name"]) for event in events(folder, "stage")]
    assert [frames for frames, _ in recorder.of("on_evaluation")] == [0, 48, 80, 96]
    for (_, evaluation), event in zip(
        recorder.of("on_evaluation"), events(folder, "evaluation"), strict=True
    ):
        assert float(np.mean(evaluation.returns)) == event["evaluation/return"]
    assert [(frames, path.name) for frames, path in recorder.of("on_checkpoint")] == [
        (event["frames"], event["checkpoint"]) for event in events(folder, "checkpoint")
    ]
    assert recorder.of("on_best") == [
        (event["frames"], event["metric"], event["value"]) for event in events(folder, "best")
    ]
    assert recorder.of("on_end") == [(96, "done")]


def test_a_resumed_run_says_where_it_begins(tmp_path):
    folder = run(tmp_path / "run", toy_config(total_frames=48))
    recorder = Recorder()
    run(folder, toy_config(), callbacks=[recorder])
    (started,) = recorder.of("on_start")[0]
    assert (started.frames, started.checkpoint.name) == (48, "step-000000000048")
    assert [frames for frames, _ in recorder.of("on_batch")] == [64, 80, 96]
    assert events(folder, "resume")[0]["checkpoint"] == "step-000000000048"


def test_rows_may_be_fewer_but_a_callback_gets_all_batches(tmp_path):
    recorder = Recorder()
    folder = run(tmp_path / "run", toy_config(logging={"every": 4}), callbacks=[recorder])
    assert [row["frames"] for row in rows(folder)] == ["0", "48", "64", "80", "96"]
    assert [frames for frames, _ in recorder.of("on_batch")] == [0, 16, 32, 48, 64, 80, 96]


@pytest.mark.parametrize("hook", HOOKS)
def test_one_that_fails_is_left_out_and_changes_nothing(tmp_path, caplog, hook, whole_staged):
    callback, after = failing(hook, ValueError("broken")), Recorder()
    folder = run(tmp_path / "run", staged(), callbacks=[callback, after])
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert f"Recorder.{hook} failed and is left out from now on: ValueError('broken')" in warnings[0]
    assert f"{__file__}:" in warnings[0]
    assert len(callback.failures) == 1
    assert callback.of("on_end") == []
    assert after.of("on_end") == [(96, "done")]
    assert files(folder) == files(whole_staged)
    assert same(state(folder), state(whole_staged))


def test_one_that_draws_and_changes_what_it_gets_changes_nothing(tmp_path, whole):
    class Meddler(Callback):
        def on_batch(self, frames, metrics):
            torch.rand(3), random.random(), np.random.rand()
            metrics.clear()

        on_evaluation = on_checkpoint = on_start = lambda self, *_: torch.manual_seed(1)

    recorder = Recorder()
    folder = run(tmp_path / "run", toy_config(), callbacks=[Meddler(), recorder])
    assert files(folder) == files(whole)
    assert same(state(folder), state(whole))
    assert all(metrics for _, metrics in recorder.of("on_batch"))


class TestStopTraining:
    @pytest.mark.parametrize("hook", HOOKS[:-1])
    def test_the_run_ends_with_a_checkpoint_and_resumes_as_if_never_stopped(
        self, tmp_path, hook, whole_staged
    ):
        callback, after = failing(hook, StopTraining("enough")), Recorder()
        folder = run(tmp_path / "run", staged(), callbacks=[callback, after])
        frames, reason = after.of("on_end")[0]
        assert reason == "Recorder: enough"
        assert callback.of("on_end") == [(frames, reason)]
        assert frames == 0
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == frames
        assert events(folder, "stop")[-1]["reason"] == reason
        run(folder, staged())
        assert files(folder)["metrics.csv"] == files(whole_staged)["metrics.csv"]
        assert same(state(folder), state(whole_staged))

    def test_in_the_middle(self, tmp_path, whole):
        class Enough(Callback):
            def on_batch(self, frames, metrics):
                if frames == 32:
                    raise StopTraining

        recorder = Recorder()
        folder = run(tmp_path / "run", toy_config(), callbacks=[Enough(), recorder])
        assert recorder.of("on_end") == [(32, "Enough")]
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 32
        run(folder, toy_config())
        assert (folder.path / "metrics.csv").read_bytes() == (whole.path / "metrics.csv").read_bytes()
        assert same(state(folder), state(whole))

    def test_after_the_last_batch_the_run_is_done(self, tmp_path):
        class Late(Callback):
            def on_batch(self, frames, metrics):
                if frames == 96:
                    raise StopTraining("late")

            def on_end(self, frames, reason):
                raise StopTraining("too late")

        folder = run(tmp_path / "run", toy_config(), callbacks=[Late()])
        assert events(folder, "stop")[-1]["reason"] == "done"


class TestTheEnd:
    def test_a_signal(self, tmp_path):
        class Signal(Callback):
            def on_batch(self, frames, metrics):
                if frames == 32:
                    signal.raise_signal(signal.SIGTERM)

        recorder = Recorder()
        with pytest.raises(Interrupted, match="stopped by SIGTERM after 32 frames"):
            run(tmp_path / "run", toy_config(), callbacks=[Signal(), recorder])
        assert recorder.of("on_end") == [(32, "SIGTERM")]

    def test_a_number_that_is_not_finite(self, tmp_path):
        parts = toy_parts(toy_config())
        learn = parts.algorithm.learn

        def spoilt(batch):
            metrics = learn(batch)
            return {**metrics, "loss": metrics["loss"] * (torch.nan if parts.algorithm.batches == 3 else 1)}

        parts.algorithm.learn = spoilt
        recorder = Recorder()
        folder = RunFolder.create(tmp_path / "run", toy_config().to_plain())
        with pytest.raises(NumericalStop):
            run(folder, toy_config(), parts=parts, callbacks=[recorder])
        (ended,) = recorder.of("on_end")
        assert ended[0] == 32
        assert "not finite" in ended[1]
        assert events(folder, "stop")[-1]["reason"] == ended[1]

    @pytest.mark.parametrize("error", [ValueError("wrong"), KeyboardInterrupt()])
    def test_any_error(self, tmp_path, error):
        parts = toy_parts(toy_config())

        def fail(batch):
            raise error

        parts.algorithm.learn = fail
        recorder = Recorder()
        with pytest.raises(type(error)):
            run(tmp_path / "run", toy_config(), parts=parts, callbacks=[recorder])
        (ended,) = recorder.of("on_end")
        assert ended[1].startswith(type(error).__name__)

    @pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
    def test_a_log_that_cannot_be_written_stops_the_run(self, tmp_path, monkeypatch, error):
        written = EventLog.write

        def full(self, event, fields):
            if event in ("best", "stop"):
                raise OSError(error, os.strerror(error))
            written(self, event, fields)

        monkeypatch.setattr(EventLog, "write", full)
        recorder = Recorder()
        with pytest.raises(CheckpointError, match=rf"cannot write to .*run: {os.strerror(error)}"):
            run(tmp_path / "run", toy_config(), callbacks=[recorder])
        assert len(recorder.of("on_end")) == 1

    def test_the_end_that_cannot_be_logged_is_an_error_too(self, tmp_path, monkeypatch):
        written = EventLog.write

        def full(self, event, fields):
            if event == "stop":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written(self, event, fields)

        monkeypatch.setattr(EventLog, "write", full)
        recorder = Recorder()
        with pytest.raises(CheckpointError, match="No space left"):
            run(tmp_path / "run", toy_config(), callbacks=[recorder])
        assert recorder.of("on_end") == [(96, "done")]


def test_tensorboard_that_cannot_be_written_does_not_stop_the_run(tmp_path, caplog):
    config = toy_config(logging={"tensorboard": True})
    folder = RunFolder.create(tmp_path / "run", config.to_plain())
    (folder.path / "tensorboard").write_text("in the way")
    run(folder, config)
    assert len(rows(folder)) == 7
    assert caplog.text.count("TensorBoardLog.on_batch failed") == 1


def test_the_logs_of_a_run_are_callbacks():
    for kind in (MetricsLog, EventLog, TensorBoardLog, ShowProgress):
        assert issubclass(kind, Callback)


def test_progress_shows_rate_and_returns(caplog, tmp_path):
    shown = []

    class Display:
        def start(self, frames, total, name):
            shown.append((frames, total, name))

        def update(self, frames, values):
            shown.append((frames, values))

        def close(self):
            shown.append("closed")

    run(tmp_path / "run", staged(), callbacks=[ShowProgress(Display())])
    assert shown[0] == (0, 96, "toy")
    assert [each[0] for each in shown[1:-1]] == [0, 16, 32, 48, 64, 80, 96]
    labels = {label for each in shown[1:-1] for label in each[1]}
    assert labels == {"frames/s", "return", "evaluated", "stage"}
    assert shown[-1] == "closed"


def test_lines_go_to_stderr_where_nobody_set_up_logging(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("edgewise"), "handlers", [])
    lines = ShowProgress(ProgressLines())
    lines.on_start(RunInfo(path=None, name="walk", config={}, total_frames=100))
    lines.on_batch(100, {"episode/return": 0.5})
    lines.on_end(100, "done")
    assert capsys.readouterr().err.startswith("walk: 0 of 100 frames\n100 of 100 frames, 0 s left")
    assert not logging.getLogger("edgewise.training.logging.progress").handlers


def test_callbacks_are_objects():
    with pytest.raises(ConfigError, match=r"give an object: Recorder\(\)"):
        checked_callbacks([Recorder])
    with pytest.raises(ConfigError, match="got 'csv', expected objects of subclasses of Callback"):
        ew.train("graphwalk-ppo", callbacks=["csv"])
    assert Callbacks().state_dict() == {}


LOGGER = """
from pathlib import Path
import edgewise as ew

class Noted(ew.Callback):
    def on_start(self, run):
        self.path = run.path / "noted.txt"
    def on_batch(self, frames, metrics):
        with self.path.open("a") as file:
            print(frames, metrics["episode/return"] if "episode/return" in metrics else "", file=file)
    def on_end(self, frames, reason):
        with self.path.open("a") as file:
            print("end", frames, reason, file=file)

class Short(ew.Callback):
    def on_batch(self, frames, metrics):
        if frames >= 64:
            raise ew.StopTraining("short")

class Needy(ew.Callback):
    def __init__(self, project):
        self.project = project

class Foreign:
    pass
"""


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def installed(self, tmp_path, monkeypatch):
        """A package with an entry point for a logger, and a file with the same."""
        folder = tmp_path / "site"
        (folder / "noted_logger-1.dist-info").mkdir(parents=True)
        (folder / "noted_logger.py").write_text(LOGGER)
        (folder / "noted_logger-1.dist-info" / "entry_points.txt").write_text(
            "[edgewise.loggers]\nnoted = noted_logger:Noted\n"
        )
        (tmp_path / "mine.py").write_text(LOGGER)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.chdir(tmp_path)

    def test_by_entry_point_and_again_on_resume(self, tmp_path):
        out = tmp_path / "run"
        assert main(["train", "graphwalk-ppo", *FLAGS, "--out", str(out), "--logger", "noted"]) == 0
        lines = (out / "noted.txt").read_text().splitlines()
        assert [line.split()[0] for line in lines] == ["32", "64", "96", "end"]
        assert main(["resume", str(out), "--total-frames", "128", "--logger", "noted"]) == 0
        assert (out / "noted.txt").read_text().splitlines()[-2:][1] == "end 128 done"
        assert main(["resume", str(out), "--total-frames", "160"]) == 0
        assert "160" not in (out / "noted.txt").read_text()
        assert "noted" not in (out / "config.json").read_text()

    def test_by_address_and_several(self, tmp_path, capsys):
        out = tmp_path / "run"
        flags = ["--logger", "mine.py:Noted", "--logger=mine.py:Short"]
        assert main(["train", "graphwalk-ppo", *FLAGS, "--out", str(out), *flags]) == 0
        assert (out / "noted.txt").read_text().splitlines()[-1] == "end 64 Short: short"
        assert "stopped by Short: short after 64 frames, saved in" in capsys.readouterr().err
        assert (out / "report.html").exists()

    @pytest.mark.parametrize(
        ("reference", "words"),
        [
            ("notd", "no logger is called 'notd'"),
            ("mine.py:Needy", "the logger mine.py:Needy cannot be built without arguments"),
            ("mine.py:Foreign", "mine.py:Foreign is no logger: expected a subclass of Callback"),
        ],
    )
    def test_what_cannot_be_used_is_said_before_a_folder_is_made(self, tmp_path, capsys, reference, words):
        out = tmp_path / "run"
        assert main(["train", "graphwalk-ppo", *FLAGS, "--out", str(out), "--logger", reference]) == 2
        assert words in capsys.readouterr().err
        assert not out.exists()
