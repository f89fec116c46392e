"""The resume contract: a run that is killed at random moments ends bit for bit like one left alone."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from benchmarks.kill_resume import PHASES, differences, small_run, train
from tests import processes

from edgewise.cli.main import main
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

KILLS = 10


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run that nobody disturbs."""
    folder = small_run(tmp_path_factory.mktemp("alone") / "run")
    train(folder)
    return folder


def test_ten_kills_leave_no_trace(tmp_path):
    """In a process of its own, which forks only before it has computed anything."""
    words = ("benchmarks.kill_resume", "--kills", KILLS, "--runs", 1, "--json")
    result = json.loads(processes.run(processes.program, *words, place=tmp_path / "kills"))
    assert result["kills"] == KILLS
    assert set(result["aimed_at"]) == set(PHASES)
    assert result["differences"] == []


def other(generator):
    return generator.copy_(torch.Generator().manual_seed(12345).get_state())


PLANTS = {
    "another random state": lambda state: other(state["random"]["torch"]),
    "other worlds": lambda state: other(state["rollout"]["env"]["generator"]),
    "another order of samples": lambda state: other(state["algorithm"]["generator"]),
    "no moments": lambda state: state["algorithm"]["optimizer"].clear(),
    "nothing carried": lambda state: state["rollout"]["carried"].clear(),
    "no open episodes": lambda state: state["trainer"]["iteration"]["episodes"].clear(),
    "a row too few": lambda state: state["trainer"]["log"]["metrics"].__setitem__("rows", 3),
}


@pytest.mark.parametrize("plant", [None, *PLANTS])
def test_the_comparison_sees_whatever_is_not_kept(alone, tmp_path, plant):
    folder = resumed(alone, tmp_path / "run", change=PLANTS.get(plant))
    assert (differences(alone.path, folder.path) == []) == (plant is None)


def resumed(alone, path, *, change):
    """A copy of a run that went on from its last checkpoint but one, after a change of what that holds."""
    shutil.copytree(alone.path, path)
    folder = RunFolder(path)
    before_last, last = checkpoint.saved(folder.checkpoints)[-2:]
    state = checkpoint.load(before_last)
    for saved in (before_last, last):
        shutil.rmtree(saved)
    if change is not None:
        change(state)
    checkpoint.save(folder.checkpoints, state, step=checkpoint.step_of(before_last))
    train(folder)
    return folder


def test_processes_of_the_command_line_agree_whatever_their_hashes(alone, tmp_path):
    """Same seed, other PYTHONHASHSEED than here; killed, and resumed by a process with a third one."""
    killed = tmp_path / "killed"
    first = start("train", alone.config_file, "--out", killed, hashes=2)
    while len(rows(killed)) < 4 and first.poll() is None:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    processes.run(processes.edgewise, "resume", killed, place=tmp_path / "resumed")
    assert differences(alone.path, killed) == []


def test_the_command_line_refuses_a_damaged_checkpoint_in_one_line(alone, tmp_path, capsys):
    shutil.copytree(alone.path, tmp_path / "run")
    for path in checkpoint.saved(tmp_path / "run" / "checkpoints"):
        (path / "algorithm.safetensors").unlink()
    assert main(["resume", str(tmp_path / "run")]) == 3
    errors = capsys.readouterr().err.splitlines()
    assert [line for line in errors if line.startswith("error: ")] == errors[-1:]
    assert "algorithm.safetensors is missing" in errors[-1]


def start(*arguments, hashes):
    """A process of the command line."""
    return subprocess.Popen(
        [sys.executable, "-m", "edgewise.cli", *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": str(hashes), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder):
    path = folder / "metrics.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
