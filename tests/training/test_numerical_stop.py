"""A number that is not finite in a PPO run: exit code 4 after that batch, which is kept for a look."""

import pytest
import torch
from benchmarks.kill_resume import small_run
from safetensors.torch import load_file

from edgewise.algorithms.ppo import PPO
from edgewise.cli.main import main
from edgewise.data.rollout import Rollout
from edgewise.runs.checkpoint import store as checkpoint

BATCH = 3
"""Which batch is spoilt; the one before it is the last good one."""


def on_batch(monkeypatch, spoil):
    """Let `spoil` change one batch as it was collected."""
    collect, count = Rollout.collect, [0]

    def spoilt(self):
        batch = collect(self)
        count[0] += 1
        if count[0] == BATCH:
            spoil(batch)
        return batch

    monkeypatch.setattr(Rollout, "collect", spoilt)


def reward(monkeypatch):
    on_batch(monkeypatch, lambda batch: batch["next", "reward"][0, 0].fill_(torch.nan))


def observation(monkeypatch):
    on_batch(monkeypatch, lambda batch: batch["graph", "x"][0, 0, 0].fill_(torch.inf))


def loss(monkeypatch):
    learn, terms, batches = PPO.learn, PPO._loss, [0]

    def counted(self, batch):
        batches[0] += 1
        return learn(self, batch)

    def spoilt(self, *args, **kwargs):
        value, metrics = terms(self, *args, **kwargs)
        return (
            (value * torch.nan, {**metrics, "loss": value * torch.nan})
            if batches[0] == BATCH
            else (value, metrics)
        )

    monkeypatch.setattr(PPO, "learn", counted)
    monkeypatch.setattr(PPO, "_loss", spoilt)


def gradient(monkeypatch):
    """The loss is sound, but one weight's gradient is not."""
    learn, batches = PPO.learn, [0]

    def counted(self, batch):
        batches[0] += 1
        weight = next(self.policy.parameters())
        hook = weight.register_hook(lambda grad: grad * (torch.nan if batches[0] == BATCH else 1.0))
        try:
            return learn(self, batch)
        finally:
            hook.remove()

    monkeypatch.setattr(PPO, "learn", counted)


@pytest.mark.parametrize("inject", [reward, observation, loss, gradient])
def test_the_run_stops_in_the_same_batch(tmp_path, monkeypatch, capsys, inject):
    folder = small_run(tmp_path / "run", {"checkpoint.every": 32})
    inject(monkeypatch)
    assert main(["resume", str(folder.path)]) == 4
    errors = capsys.readouterr().err
    good = folder.checkpoints / "step-000000000064"
    assert f"not finite in the batch after {32 * (BATCH - 1)} frames" in errors
    assert f"the last good checkpoint is {good}" in errors
    assert "Traceback" not in errors
    assert checkpoint.latest(folder.checkpoints) == good
    dumped = load_file(folder.path / "nonfinite-000000000064.safetensors")
    assert dumped["graph.x"].shape[:2] == (4, 8)
