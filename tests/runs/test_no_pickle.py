"""No pickle, no socket and no other process in train, resume, eval and report: an audit hook listens."""

import copyreg
import os
import pickle
import socket
import subprocess
import sys

import pytest
import torch
from tests.cli.conftest import FLAGS
from tests.training.toys import run, toy_config

from edgewise.cli.main import main

FORBIDDEN = (
    "pickle.",
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.spawn",
)
HEARD: list[str] = []
LISTENING = [False]


def _hear(event, arguments):
    if LISTENING[0] and event.startswith(FORBIDDEN) and event != "socket.gethostname":  # it opens nothing
        HEARD.append(f"{event} {arguments}")


sys.addaudithook(_hear)


def verbs(folder):
    """Train, resume, evaluate and report a small run, with TensorBoard, evaluations and replays."""
    changed = ("tensorboard", "evaluation.every", "total_frames")
    flags = [flag for flag in FLAGS if not any(name in flag for name in changed)]
    train = [
        "train",
        "graphwalk-ppo",
        *flags,
        "--evaluation.every=40",
        "--total-frames=64",
        "--out",
        str(folder),
    ]
    resume = ["resume", str(folder), "--total-frames", "96"]
    evaluate = ["eval", str(folder), "--episodes", "4", "--baselines", "all"]
    return [
        main(words) for words in (train, resume, evaluate, ["report", str(folder)], ["verify", str(folder)])
    ]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """What other libraries do while they are imported is not listened to."""
    assert verbs(tmp_path_factory.mktemp("first") / "run") == [0] * 5


@pytest.fixture
def heard(monkeypatch, imported):
    """What was heard meanwhile, by the audit hook and by closed doors."""

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


@pytest.mark.parametrize(
    ("event", "act"),
    [
        ("pickle.find_class", lambda: pickle.loads(pickle.dumps(copyreg.dispatch_table.__class__))),
        ("socket.__new__", lambda: socket.socket().close()),
        ("subprocess.Popen", lambda: subprocess.run(["true"], check=True)),
        ("os.system", lambda: os.system("true")),
        ("os.fork", lambda: os.waitpid(os.fork() or os._exit(0), 0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_hook_hears(event, act):
    HEARD.clear()
    LISTENING[0] = True
    act()
    LISTENING[0] = False
    assert any(event in each for each in HEARD)


def test_the_trainer_does_none_of_it(tmp_path, heard):
    folder = run(tmp_path / "run", toy_config(total_frames=64, logging={"tensorboard": True}))
    run(folder, toy_config(total_frames=128))
    assert heard == []


def test_no_verb_does_any_of_it(tmp_path, heard):
    assert verbs(tmp_path / "run") == [0] * 5
    assert heard == []
