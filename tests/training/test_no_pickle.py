"""No pickle is opened in a run, its checkpoints, its resumption, its evaluations: an audit hook listens."""

import copyreg
import pickle
import sys

import pytest
import torch
from benchmarks.kill_resume import small_run
from tests.training.toys import run, toy_config

from edgewise.cli.main import main

HEARD: list[str] = []
LISTENING = [False]


def _hear(event, arguments):
    if LISTENING[0] and event.startswith("pickle."):
        HEARD.append(f"{event} {arguments}")


sys.addaudithook(_hear)


@pytest.fixture
def heard(monkeypatch):
    """What was pickled or unpickled meanwhile, by the audit hook and by closed doors."""

    def shut(name):
        def refuse(*_, **__):
            HEARD.append(name)
            raise AssertionError(f"{name} was called")

        return refuse

    for owner, name in [
        (torch, "load"),
        (torch, "save"),
        *((pickle, name) for name in ("load", "loads", "dump", "dumps", "_dumps", "_loads")),
    ]:
        monkeypatch.setattr(owner, name, shut(f"{owner.__name__}.{name}"))
    HEARD.clear()
    LISTENING[0] = True
    yield HEARD
    LISTENING[0] = False


def test_the_hook_hears_a_pickle():
    content = pickle.dumps(copyreg.dispatch_table.__class__)
    HEARD.clear()
    LISTENING[0] = True
    pickle.loads(content)
    LISTENING[0] = False
    assert any("pickle.find_class" in event for event in HEARD)


def test_nothing_is_pickled_by_the_trainer(tmp_path, heard):
    folder = run(tmp_path / "run", toy_config(total_frames=64, logging={"tensorboard": True}))
    run(folder, toy_config(total_frames=128))
    assert heard == []


def test_nothing_is_pickled_by_train_resume_and_eval(tmp_path, heard, capsys):
    folder = small_run(tmp_path / "run", {"training.total_frames": 64})
    assert main(["resume", str(folder.path)]) == 0
    assert main(["resume", str(folder.path), "--total-frames", "96"]) == 0
    assert main(["eval", str(folder.path), "--episodes", "4"]) == 0
    assert heard == []
