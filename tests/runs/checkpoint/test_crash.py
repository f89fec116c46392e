"""A save that fails or is killed at any step leaves the older checkpoint whole, and never half a new one."""

import contextlib
import errno
import os
import random
import shutil
import signal
import time

import pytest
import torch
from tests.runs.states import same

from edgewise.config.errors import CheckpointError
from edgewise.runs.checkpoint import segments
from edgewise.runs.checkpoint import store as checkpoint

CALLS = ("write", "fsync", "rename", "open", "link", "mkdir")
CRASHED = 77


def state(step):
    return {
        "algorithm": {"weight": torch.full((3, 4), float(step))},
        "replay": torch.cat((torch.full((128,), step), torch.arange(100))).int(),
    }


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "LARGE", 512)


def strike(monkeypatch, number, act):
    """Let the `number`-th system call fall to `act`; returns a list that holds its name once it did."""
    count, struck = [0], []

    def wrapped(name, original):
        def call(*args, **kwargs):
            count[0] += 1
            if count[0] == number:
                struck.append(name)
                act()
            return original(*args, **kwargs)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrapped(name, getattr(os, name)))
    return struck


def no_space():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_at_any_call_leaves_the_older_one(tmp_path):
    for step in (0, 1):
        checkpoint.save(tmp_path / "start", state(step), step=step)
    seen, number = set(), 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "start", folder)
        with pytest.MonkeyPatch.context() as patch:
            struck = strike(patch, number, no_space)
            with contextlib.suppress(CheckpointError):
                checkpoint.save(folder, state(2), step=2)
        if not struck:
            break
        seen |= set(struck)
        assert not list(folder.glob(".stage-*")) or struck == ["rename"]
        found = checkpoint.latest(folder)
        assert same(checkpoint.load(found), state(checkpoint.step_of(found)))
        assert all(checkpoint.load(path) for path in checkpoint.saved(folder))
        again = checkpoint.save(folder, state(3), step=3, keep_last=1)
        assert same(checkpoint.load(again), state(3))
        assert [path.name for path in folder.iterdir()] == [again.name]
    assert number > 20
    assert seen == set(CALLS)


@pytest.mark.parametrize("keep_last", [1, 3])
def test_a_crash_at_any_call_leaves_a_whole_one(tmp_path, keep_last):
    for step in (0, 1):
        checkpoint.save(tmp_path / "start", state(step), step=step)
    number, crashed = 0, True
    while crashed:
        number += 1
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "start", folder)
        child = os.fork()
        if child == 0:
            with pytest.MonkeyPatch.context() as patch:
                strike(patch, number, lambda: os._exit(CRASHED))
                checkpoint.save(folder, state(2), step=2, keep_last=keep_last)
            os._exit(0)
        crashed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == CRASHED
        found = checkpoint.latest(folder)
        assert same(checkpoint.load(found), state(checkpoint.step_of(found)))
        assert all(checkpoint.load(path) for path in checkpoint.saved(folder))
    assert checkpoint.step_of(found) == 2
    assert number > 20


def test_sigkill_at_random_moments(tmp_path):
    dice = random.Random(0)
    step = 0
    for _ in range(10):
        child = os.fork()
        if child == 0:
            for number in range(step + 1, step + 1000):
                checkpoint.save(tmp_path, state(number), step=number, keep_last=2)
            os._exit(0)
        while not any(checkpoint.step_of(path) > step for path in checkpoint.saved(tmp_path)):
            time.sleep(0.001)
        time.sleep(dice.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for path in checkpoint.saved(tmp_path):
            assert same(checkpoint.load(path), state(checkpoint.step_of(path)))
        step = checkpoint.step_of(checkpoint.latest(tmp_path))
    assert step >= 10


def test_all_is_on_disk_before_the_name_is_given(tmp_path, monkeypatch):
    calls = []
    fsync, rename = os.fsync, os.rename

    def syncing(descriptor):
        calls.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def renaming(source, target):
        calls.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "rename", renaming)
    path = checkpoint.save(tmp_path, state(1), step=1)
    stage = tmp_path / f".stage-{path.name}"
    before, after = calls[: calls.index("rename")], calls[calls.index("rename") + 1 :]
    assert set(before) == {str(stage / file.name) for file in path.iterdir()} | {str(stage)}
    assert before[-1] == str(stage)
    assert after == [str(tmp_path)]
