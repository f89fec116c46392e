"""`edgewise train --processes 2` as a user types it: stopped, killed, continued, and under torchrun."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.kill_resume import differences
from tests.cli.conftest import FLAGS

pytestmark = pytest.mark.thorough

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
KEPT = [flag for flag in FLAGS if "total_frames" not in flag and "checkpoint.every" not in flag]
TRAIN = ["train", "graphwalk-ppo", *KEPT, "--total-frames=4800", "--checkpoint.every=64"]
LOST = 5


def edgewise(*words):
    """Start a command line that does not ignore SIGHUP, even if the tests run under nohup."""
    return subprocess.Popen(
        [sys.executable, "-m", "edgewise.cli", *words],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


def finished(process):
    shown, errors = process.communicate(timeout=300)
    return process.returncode, shown, errors


def started(folder):
    """A command whose run has begun to train."""
    process = edgewise(*TRAIN, "--processes", "2", "--out", str(folder))
    while not any(int(path.name[5:]) for path in folder.glob("checkpoints/step-*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def ranks_of(process):
    """The processes that a command has started, in the order of their ranks."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"PPid:\t{process.pid}\n" in path.read_text():
                variables = (path.parent / "environ").read_bytes().split(b"\0")
                rank = next(each for each in variables if each.startswith(b"RANK="))
                found[int(rank[5:])] = int(path.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [found[rank] for rank in sorted(found)]


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    code, shown, errors = finished(edgewise(*TRAIN, "--processes", "2", "--out", str(folder)))
    assert code == 0, errors
    assert "policy" in shown
    assert errors.count("run folder") == 1
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_the_run_goes_on(tmp_path, whole, number):
    process = started(tmp_path / "run")
    process.send_signal(number)
    code, _, errors = finished(process)
    assert code == 130
    assert f"stopped by {number.name}" in errors
    code, _, errors = finished(edgewise("resume", str(tmp_path / "run"), "--processes", "2"))
    assert code == 0, errors
    assert differences(whole, tmp_path / "run") == []


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_all_and_the_run_goes_on(tmp_path, whole, rank):
    process = started(tmp_path / "run")
    pids = ranks_of(process)
    os.kill(pids[rank], signal.SIGKILL)
    code, _, errors = finished(process)
    assert code == LOST, errors
    assert f"process {rank} of 2 was killed by SIGKILL" in errors
    assert "Traceback" not in errors
    assert all(map(is_gone, pids))
    for other, message in (("3", "shared by 2 processes, got 3"), ("1", "shared by 2 processes, got 1")):
        code, _, errors = finished(edgewise("resume", str(tmp_path / "run"), "--processes", other))
        assert (code, message in errors) == (2, True)
    code, _, errors = finished(edgewise("resume", str(tmp_path / "run")))
    assert code == 0, errors
    assert differences(whole, tmp_path / "run") == []


def test_no_process_outlives_the_command(tmp_path):
    process = started(tmp_path / "run")
    pids = ranks_of(process)
    assert len(pids) == 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while not all(map(is_gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(is_gone, pids))


def test_torchrun_trains_the_same_run(tmp_path, whole):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "edgewise.cli", *TRAIN, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert differences(whole, tmp_path / "run") == []
