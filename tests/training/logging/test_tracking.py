"""Loggers for Weights & Biases and MLflow: on stand-ins, and on the real packages where installed."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

import edgewise
from edgewise.config.errors import ConfigError
from edgewise.training.callbacks import RunInfo, make_loggers
from edgewise.training.logging.mlflow_log import MLflowLog
from edgewise.training.logging.wandb_log import WandbLog

CONFIG = {"name": "walk", "seed": 3, "algorithm": {"learning_rate": 1e-3}, "env": {}}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "walk-1"
    folder.mkdir()
    return folder


def info(folder, *, checkpoint=None):
    return RunInfo(folder, "walk", CONFIG, 96, checkpoint=checkpoint)


def follow(logger, run, *, reason="done"):
    """Lets a logger follow a run of two batches."""
    logger.on_start(run)
    logger.on_batch(32, {"frames": 32, "iteration": 1, "episode/return": -2.0, "stage": "easy"})
    logger.on_batch(64, {"frames": 64, "iteration": 2, "episode/return": float("nan")})
    logger.on_best(64, "return", -1.0)
    logger.on_end(64, reason)


class WandbRun:
    """What `wandb.init` returns, as far as it is used."""

    def __init__(self, options):
        self.options, self.id = options, options["id"] or f"new-{len(made)}"
        self.rows, self.summary, self.axes, self.code = [], {}, {}, None
        made.append(self)

    def define_metric(self, name, step_metric):
        self.axes[name] = step_metric

    def log(self, row):
        self.rows.append(row)

    def finish(self, exit_code):
        self.code = exit_code


made = []


@pytest.fixture
def wandb(monkeypatch):
    made.clear()
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **options: WandbRun(options)))
    return made


def test_wandb_gets_config_numbers_and_the_end(wandb, folder):
    follow(WandbLog(), info(folder))
    (run,) = wandb
    assert (run.options["project"], run.options["name"], run.options["group"]) == (
        "edgewise",
        "walk-1",
        "walk",
    )
    assert run.options["config"] == CONFIG
    assert run.axes == {"*": "frames"}
    assert run.rows == [
        {"frames": 32, "iteration": 1.0, "episode/return": -2.0},
        {"frames": 64, "iteration": 2.0},
    ]
    assert run.summary == {"best/return": -1.0, "best/frames": 64, "ended": "done"}
    assert run.code == 0


def test_wandb_continues_its_run_when_the_run_is_resumed(wandb, folder, monkeypatch):
    follow(WandbLog(), info(folder), reason="SIGTERM")
    follow(WandbLog(), info(folder, checkpoint=Path("000000000064")))
    first, second = wandb
    assert first.code == 1
    assert (second.options["id"], second.options["resume"]) == (first.id, "allow")
    follow(WandbLog(), info(folder))
    assert wandb[2].options["id"] is None  # a run from the beginning is a new one
    monkeypatch.setenv("WANDB_MODE", "offline")
    follow(WandbLog(), info(folder, checkpoint=Path("000000000064")))
    assert (wandb[3].options["id"], wandb[3].options["resume"]) == (None, None)


class Client:
    """MLflow's client, as far as it is used."""

    calls: ClassVar[list] = []

    def __getattr__(self, name):
        def call(*positional, **named):
            self.calls.append((name, positional, named))
            if name == "get_experiment_by_name":
                return None
            if name == "create_run":
                return SimpleNamespace(info=SimpleNamespace(run_id="run-7"))
            return "experiment-1"

        return call


@pytest.fixture
def mlflow(monkeypatch):
    Client.calls = []
    entities = SimpleNamespace(
        Param=lambda name, value: (name, value), Metric=lambda name, value, time, step: (name, value, step)
    )
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=Client, entities=entities))
    return lambda: [call for call in Client.calls if call[0] != "get_experiment_by_name"]


def test_mlflow_gets_config_numbers_and_the_end(mlflow, folder):
    follow(MLflowLog(), info(folder))
    calls = mlflow()
    assert [name for name, *_ in calls] == [
        *("create_experiment", "create_run", "log_batch", "log_batch", "log_batch", "log_metric"),
        *("set_tag", "set_terminated"),
    ]
    assert calls[0][1] == ("edgewise",)
    assert calls[2][2] == {
        "params": [("name", "walk"), ("seed", "3"), ("algorithm.learning_rate", "0.001"), ("env", "{}")]
    }
    assert calls[3][2]["metrics"] == [
        ("frames", 32.0, 32),
        ("iteration", 1.0, 32),
        ("episode/return", -2.0, 32),
    ]
    assert calls[-1] == ("set_terminated", ("run-7",), {"status": "FINISHED"})


@pytest.mark.parametrize(("reason", "status"), [("SIGTERM", "KILLED"), ("OSError: disk", "FAILED")])
def test_mlflow_continues_its_run_when_the_run_is_resumed(mlflow, folder, reason, status):
    follow(MLflowLog(), info(folder), reason=reason)
    assert mlflow()[-1][2] == {"status": status}
    Client.calls = []
    follow(MLflowLog(), info(folder, checkpoint=Path("000000000064")))
    assert mlflow()[0] == ("update_run", ("run-7",), {"status": "RUNNING"})
    assert all(positional[0] == "run-7" for _, positional, _ in mlflow())


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_without_the_package_the_extra_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=f"needs the package {name}") as error:
        make_loggers([name])
    assert error.value.hint == f"pip install 'edgewise[{name}]'"


def test_nothing_of_them_is_imported_unless_asked_for():
    """No module of ours imports one while it is imported itself, not even under another import."""
    pattern = re.compile(r"^(import|from) (wandb|mlflow|optuna)\b", re.MULTILINE)
    source = Path(edgewise.__file__).parent
    assert [file for file in source.rglob("*.py") if pattern.search(file.read_text())] == []


def test_the_real_wandb_offline(folder, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    follow(WandbLog(), info(folder))
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


def test_the_real_mlflow_in_a_folder(folder, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    follow(MLflowLog(), info(folder), reason="SIGTERM")
    follow(MLflowLog(), info(folder, checkpoint=Path("000000000064")))
    client = mlflow.MlflowClient()
    found = client.get_run((folder / "mlflow-id.txt").read_text().strip())
    assert found.info.status == "FINISHED"
    assert found.data.params["algorithm.learning_rate"] == "0.001"
    history = client.get_metric_history(found.info.run_id, "episode/return")
    assert [(metric.step, metric.value) for metric in history] == [(32, -2.0), (32, -2.0)]
