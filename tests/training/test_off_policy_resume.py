"""Runs that learn from a replay go on bit for bit, buffer and all, from wherever they were stopped."""

import shutil
import signal
import time

import pytest
import torch
from benchmarks.kill_resume import differences, train
from tests import processes
from tests.runs.states import same

from edgewise.config.errors import CheckpointError
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import load_trained
from edgewise.experiments.launch import resume
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder

SMALL = {
    "training": {"total_frames": 32 * 8, "num_envs": 4},
    "env": {"max_steps": 12},
    "algorithm": {
        "n_step": 3,
        "replay_size": 150,
        "learning_starts": 64,
        "minibatch_size": 8,
        "updates_per_transition": 0.07,
        "prioritised": True,
    },
    "evaluation": {
        "every": 96,
        "stages": [{"name": "one", "episodes": 2}, {"name": "two", "episodes": 1}],
    },
    "checkpoint": {"every": 32, "keep_last": 8},
    "logging": {"tensorboard": False, "replays": 0},
}
AGENTS = ("ac-iqn", "rainbow")


def small_run(folder, name):
    config = load_config(f"marine-{name}", keywords=SMALL)
    Builder(config).parts()
    return RunFolder.create(folder, config.to_plain())


@pytest.fixture(scope="module", params=AGENTS)
def alone(request, tmp_path_factory):
    """A run that nobody disturbs: its ring overflows, windows cross its batches."""
    folder = small_run(tmp_path_factory.mktemp(request.param) / "run", request.param)
    train(folder)
    return folder


def stopped_at(alone, place, index, *, change=None):
    """A copy of a run that goes on from one of its checkpoints, after a change of what that holds."""
    shutil.copytree(alone.path, place)
    folder = RunFolder(place)
    saved = checkpoint.saved(folder.checkpoints)
    if change is not None:
        state = checkpoint.load(saved[index])
        change(state)
        shutil.rmtree(saved[index])
        checkpoint.save(folder.checkpoints, state, step=checkpoint.step_of(saved[index]), keep_last=20)
    for path in saved[index + 1 :]:
        shutil.rmtree(path)
    train(folder)
    return folder


@pytest.mark.parametrize("index", [2, 5])
def test_it_ends_like_one_left_alone_from_any_checkpoint(alone, tmp_path, index):
    folder = stopped_at(alone, tmp_path / "run", index)
    assert differences(alone.path, folder.path) == []
    state = checkpoint.load(checkpoint.latest(folder.checkpoints))
    assert len(state["data"]["replay_buffer"]["stored"]["reward"]) == 150
    assert state["algorithm"]["counts"]["updates"] > 10


PLANTS = {
    "another reward": lambda state: state["data"]["replay_buffer"]["stored"]["reward"].zero_(),
    "nothing waiting": lambda state: state["data"]["transitions"].clear(),
    "other priorities": lambda state: state["data"]["replay_buffer"]["sampler"]["priorities"].fill_(1.0),
    "other draws": lambda state: state["data"]["replay_buffer"]["generator"].copy_(
        torch.Generator().manual_seed(5).get_state()
    ),
    "other noise": lambda state: state["algorithm"]["generator"].copy_(
        torch.Generator().manual_seed(5).get_state()
    ),
    "no moments": lambda state: state["algorithm"]["optimizer"].clear(),
    "no lag": lambda state: state["algorithm"].__setitem__("targets", state["algorithm"]["networks"]),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_the_comparison_sees_whatever_is_not_kept(alone, tmp_path, plant):
    folder = stopped_at(alone, tmp_path / "run", 5, change=PLANTS[plant])
    assert differences(alone.path, folder.path) != []


def test_a_policy_is_loaded_without_the_replay(alone, tmp_path):
    """A bad disk under the replay buffer: the policy still loads, and a resumed run says what is wrong."""
    shutil.copytree(alone.path, tmp_path / "run")
    for path in checkpoint.saved(tmp_path / "run" / "checkpoints"):
        file = path / "data.safetensors"
        file.write_bytes(file.read_bytes()[::-1])
    whole, damaged = (load_trained(path, which="latest") for path in (alone.path, tmp_path / "run"))
    assert same(whole.algorithm.networks.state_dict(), damaged.algorithm.networks.state_dict())
    assert len(damaged.algorithm.replay_buffer) == 0
    with pytest.raises(CheckpointError, match=r"data\.safetensors does not match"):
        resume(tmp_path / "run")


def test_a_killed_process_is_resumed_by_another(alone, tmp_path):
    killed = tmp_path / "run"
    words = ("train", alone.config_file, "--out", killed)
    first = processes.start(processes.edgewise, *words, place=tmp_path / "first")
    while len(checkpoint.saved(killed / "checkpoints")) < 4 and not first.is_over:
        time.sleep(0.01)
    first.kill(signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    processes.run(processes.edgewise, "resume", killed, place=tmp_path / "second")
    assert differences(alone.path, killed) == []
