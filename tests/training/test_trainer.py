"""The trainer with a toy algorithm: what it leaves behind, and that stopping it anywhere changes nothing."""

import csv
import dataclasses
import errno
import json
import os
import pty
import random
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests import processes
from tests.cli.conftest import FLAGS
from tests.runs.states import same
from tests.training.toys import run, toy_config, toy_parts

from edgewise.config.errors import CheckpointError, ConfigError, Interrupted
from edgewise.runs.checkpoint import store as checkpoint
from edgewise.runs.folder import RunFolder
from edgewise.training import trainer
from edgewise.training.fitting import check_fit
from edgewise.training.logging.metrics_log import MetricsLog
from edgewise.training.run_evaluator import RunEvaluator
from edgewise.training.trainer import Trainer


def rows(folder):
    with open(folder.path / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


def events(folder, kind=None):
    lines = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    return [event for event in lines if kind in (None, event["event"])]


def final(folder):
    state = checkpoint.load(checkpoint.latest(folder.checkpoints))
    return {name: part for name, part in state.items() if name != "clock"}


def test_a_run_leaves_what_the_next_person_needs(tmp_path):
    folder = run(tmp_path / "run", toy_config())
    assert [row["frames"] for row in rows(folder)] == ["0", "16", "32", "48", "64", "80", "96"]
    assert {"evaluation/return", "episode/return", "episode/length", "learn/loss"} <= rows(folder)[0].keys()
    assert {"health/score/gradient_norm", "health/rms", "health/weight_norm"} <= rows(folder)[0].keys()
    evaluated = [row["frames"] for row in rows(folder) if row["evaluation/return"]]
    assert evaluated == ["0", "48", "80", "96"]
    assert sorted(path.stem for path in folder.evaluations.iterdir()) == [
        *(f"{int(frames):012d}" for frames in evaluated),
        "baseline-first",
    ]
    assert len(list(folder.replays.iterdir())) == len(evaluated)
    assert {event["event"] for event in events(folder)} == {
        "start",
        "evaluation",
        "checkpoint",
        "best",
        "stop",
    }
    assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 96
    assert not list(folder.path.glob(".*"))


def test_the_best_stays_and_is_the_best(tmp_path):
    folder = run(tmp_path / "run", toy_config(total_frames=160, checkpoint={"every": 16, "keep_last": 1}))
    measured = {
        int(row["frames"]): float(row["evaluation/return"])
        for row in rows(folder)
        if row["evaluation/return"]
    }
    best = checkpoint.best(folder.checkpoints)
    assert measured[checkpoint.step_of(best)] == max(measured.values())
    assert {checkpoint.step_of(path) for path in checkpoint.saved(folder.checkpoints)} == {
        checkpoint.step_of(best),
        160,
    }
    checkpoint.load(best)


def test_who_goes_back_behind_the_best_gets_another_best(tmp_path, caplog):
    """The first best is deleted once there is a better one, which is then set aside."""
    config = toy_config(evaluation={"every": 16}, checkpoint={"every": 16, "keep_last": 2})
    folder = run(tmp_path / "run", config, parts=scoring(config, [1, 5, 2, 3, 4, 4, 9]))
    assert checkpoint.step_of(checkpoint.best(folder.checkpoints)) == 96
    trainer = Trainer(config, scoring(config, [3]), folder)
    trainer.restore(folder.checkpoints / "step-000000000080")
    assert "of 16 frames, no longer exists" in caplog.text
    assert checkpoint.step_of(checkpoint.best(folder.checkpoints)) == 80
    trainer.run()
    note = json.loads((folder.checkpoints / "best.json").read_text())
    assert note == {"checkpoint": "step-000000000096", "metric": "return", "value": 3.0}
    checkpoint.load(checkpoint.best(folder.checkpoints))


def scoring(config, returns):
    """Parts of a toy run whose evaluations have these returns, one after another."""
    parts, left = toy_parts(config), iter(returns)

    def play(policy, *, record=0):
        found = parts.evaluate(policy, record=record)
        score = next(left) if policy is parts.algorithm.policy else 0.0
        return dataclasses.replace(found, returns=np.full_like(found.returns, score))

    return dataclasses.replace(parts, evaluate=play)


def test_less_can_be_better(tmp_path):
    config = toy_config(total_frames=160, evaluation={"maximise": False})
    folder = run(tmp_path / "run", config)
    measured = [float(row["evaluation/return"]) for row in rows(folder) if row["evaluation/return"]]
    assert json.loads((folder.checkpoints / "best.json").read_text())["value"] == min(measured)


def test_episode_returns_are_those_of_the_worlds(tmp_path):
    folder = run(tmp_path / "run", toy_config(total_frames=160))
    found = [row for row in rows(folder) if row["episode/length"]]
    assert {row["episode/length"] for row in found} == {"5.0"}
    assert all(0 < float(row["episode/return"]) < 5 for row in found)
    assert sum(float(row["episode/episodes"]) for row in rows(folder) if row["episode/episodes"]) == 160 // 5


def test_the_time_of_baselines_counts_as_evaluation(tmp_path, monkeypatch):
    measure = RunEvaluator.evaluate_baselines

    def measure_for_100_seconds(evaluator):
        clock.now += 100
        return measure(evaluator)

    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now, monotonic=lambda: clock.now)
    monkeypatch.setattr(trainer, "time", clock)
    monkeypatch.setattr(RunEvaluator, "evaluate_baselines", measure_for_100_seconds)
    folder = run(tmp_path / "run", toy_config())
    with open(folder.path / "timing.csv", newline="") as file:
        assert [float(row["evaluating"]) for row in csv.DictReader(file)][-1] == 100


def test_without_evaluations_in_between_nothing_is_evaluated_before_the_end(tmp_path, monkeypatch):
    """Baselines too; but a metric that nobody measures is an error before the first batch."""
    seen = []
    measure = RunEvaluator.evaluate_baselines
    monkeypatch.setattr(
        RunEvaluator, "evaluate_baselines", lambda self: (seen.append(len(rows(folder))), measure(self))
    )
    folder = SimpleNamespace(path=tmp_path / "run")
    found = run(tmp_path / "run", toy_config(evaluation={"every": None}))
    assert seen == [5], "after all batches but the last, whose row has the evaluation"
    assert sorted(path.stem for path in found.evaluations.iterdir()) == [f"{96:012d}", "baseline-first"]
    with pytest.raises(ConfigError, match="height is not measured"):
        run(tmp_path / "other", toy_config(evaluation={"every": None, "metric": "height"}))


def test_evaluating_and_saving_change_nothing(tmp_path):
    plain = run(tmp_path / "plain", toy_config(evaluation={"every": None}, checkpoint={"every": None}))
    busy = run(tmp_path / "busy", toy_config(evaluation={"every": 1}, checkpoint={"every": 1}))
    assert same(final(plain)["algorithm"], final(busy)["algorithm"])
    assert same(final(plain)["random"], final(busy)["random"])


@pytest.mark.parametrize("stop", [16, 48, 80])
def test_a_run_in_two_parts_equals_one_in_one(tmp_path, stop):
    schedule = {"schedules": {"learning_rate": {"kind": "linear", "start": 0.1, "frames": 96}}}
    stages = {"curriculum": [{"name": "a", "until": {"frames": 40}}, {"name": "b", "env": {"scale": 3.0}}]}
    whole = run(tmp_path / "whole", toy_config(training={**schedule, **stages}))
    half = run(tmp_path / "half", toy_config(total_frames=stop, training={**schedule, **stages}))
    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    run(half, toy_config(training={**schedule, **stages}))
    assert [row for row in rows(half) if row["frames"] != str(stop)] == [
        row for row in rows(whole) if row["frames"] != str(stop)
    ]
    assert {row["stage"] for row in rows(whole)} == {"", "a", "b"}
    assert same(final(whole)["algorithm"], final(half)["algorithm"])
    assert same(final(whole)["rollout"], final(half)["rollout"])


def test_what_was_written_after_the_checkpoint_is_cut_off(tmp_path):
    config = toy_config(checkpoint={"every": 40, "keep_last": 9})
    folder = run(tmp_path / "run", config)
    expected, state = (folder.path / "metrics.csv").read_bytes(), final(folder)
    with folder.locked():
        trainer = Trainer(config, toy_parts(config), folder)
        trainer.restore(checkpoint.saved(folder.checkpoints)[1])
        assert [row["frames"] for row in rows(folder)] == ["0", "16", "32", "48"]
        trainer.run()
    assert (folder.path / "metrics.csv").read_bytes() == expected
    assert same(final(folder), state)
    assert list(folder.checkpoints.glob("aside-*"))


def test_a_run_stopped_before_its_first_checkpoint_begins_anew(tmp_path):
    folder = run(tmp_path / "whole", toy_config())
    other = RunFolder.create(tmp_path / "other", toy_config().to_plain())
    (other.path / "metrics.csv").write_text("frames,iteration,nonsense\n0,0,1\n")
    run(other, toy_config())
    assert (folder.path / "metrics.csv").read_bytes() == (other.path / "metrics.csv").read_bytes()


def test_the_newest_whole_checkpoint_is_taken(tmp_path, caplog):
    folder = run(tmp_path / "run", toy_config())
    expected = (folder.path / "metrics.csv").read_bytes()
    newest = checkpoint.latest(folder.checkpoints)
    (newest / "state.json").write_text("{}")
    run(folder, toy_config())
    assert "state.json has 2 bytes instead of" in caplog.text
    assert (folder.path / "metrics.csv").read_bytes() == expected
    assert checkpoint.latest(folder.checkpoints) == newest


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": 5}, "was made with env.nodes = 4, this run has 5"),
        ({"training": {"num_envs": 3}}, "was made with training.num_envs = 4, this run has 3"),
        (
            {"algorithm": {"learning_rate": 0.5}},
            "was made with algorithm.learning_rate = 0.01, this run has 0.5",
        ),
        (
            {"evaluation": {"metric": "length"}},
            "was made with evaluation.metric = 'return', this run has 'length'",
        ),
    ],
)
def test_a_foreign_checkpoint_is_refused_and_nothing_loaded(tmp_path, change, words):
    folder = run(tmp_path / "run", toy_config())
    config = toy_config(**change)
    parts = toy_parts(config)
    before = parts.algorithm.state_dict()
    with pytest.raises(CheckpointError) as error:
        Trainer(config, parts, folder).restore()
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert same(parts.algorithm.state_dict(), before)


def test_a_setting_that_the_checkpoint_does_not_know_of_may_have_any_value(tmp_path):
    folder = run(tmp_path / "run", toy_config())
    state = checkpoint.load(checkpoint.latest(folder.checkpoints))
    del state["trainer"]["identity"]["evaluation"], state["trainer"]["identity"]["algorithm"]["learning_rate"]
    config = toy_config(algorithm={"learning_rate": 0.5}, evaluation={"metric": "length"})
    check_fit(folder.path, state, config=config, parts=toy_parts(config))


def test_a_run_goes_on_on_another_kind_of_device(tmp_path):
    """There a generator's state has another size: a new stream begins, the same from the same checkpoint."""
    config = toy_config()
    folder = run(tmp_path / "run", config)
    state = checkpoint.load(checkpoint.latest(folder.checkpoints))
    drawn = []
    for content in (1, 1, 2):
        state["rollout"]["env"]["generator"] = torch.full((16,), content, dtype=torch.uint8)
        parts = toy_parts(config)
        check_fit(folder.path, state, config=config, parts=parts)
        parts.rollout.load_state_dict(state["rollout"])
        drawn.append(parts.env.reset()["graph", "x"])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_foreign_model_is_refused_and_nothing_loaded(tmp_path):
    folder = run(tmp_path / "run", toy_config())
    config = toy_config()
    parts = toy_parts(config)
    parts.algorithm.policy.score = torch.nn.Linear(1, 1, dtype=torch.float64)
    before = parts.algorithm.state_dict()
    with pytest.raises(
        CheckpointError, match=r"algorithm/policy/score.bias is float32 \[1\], this run has float64"
    ):
        Trainer(config, parts, folder).restore()
    assert same(parts.algorithm.state_dict(), before)


def test_a_damaged_checkpoint_loads_nothing(tmp_path):
    folder = run(
        tmp_path / "run", toy_config(checkpoint={"every": None, "keep_last": 1}, evaluation={"every": None})
    )
    newest = checkpoint.latest(folder.checkpoints)
    content = bytearray((newest / "random.safetensors").read_bytes())
    content[-3] ^= 4
    (newest / "random.safetensors").write_bytes(content)
    for path in checkpoint.saved(folder.checkpoints)[:-1]:
        (path / "manifest.json").unlink()
    parts = toy_parts(toy_config())
    before = parts.algorithm.state_dict()
    for path in (newest, None):
        with pytest.raises(CheckpointError) as error:
            Trainer(toy_config(), parts, folder).restore(path)
        assert "random.safetensors does not match its SHA-256" in str(error.value)
        assert "\n" not in str(error.value)
    assert same(parts.algorithm.state_dict(), before)


class TestSignals:
    """Ctrl-C finishes the batch and saves; a second one stops at once."""

    @pytest.fixture(autouse=True)
    def _hangups_count(self):
        """Tests may run under `nohup` themselves."""
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        yield
        signal.signal(signal.SIGHUP, before)

    def interrupt(self, parts, number, *, times=1):
        collect, batches = parts.rollout.collect, []

        def interrupted():
            batches.append(None)
            if len(batches) == 3:
                for _ in range(times):
                    os.kill(os.getpid(), number)
            return collect()

        parts.rollout.collect = interrupted
        return parts

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_one_signal_saves_and_the_run_goes_on_later(self, tmp_path, number):
        whole = run(tmp_path / "whole", toy_config())
        folder = RunFolder.create(tmp_path / "run", toy_config().to_plain())
        handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        with pytest.raises(Interrupted) as error:
            run(folder, toy_config(), parts=self.interrupt(toy_parts(toy_config()), number))
        assert error.value.exit_code == 130
        assert "after 48 frames" in str(error.value)
        assert "edgewise resume" in str(error.value)
        assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 48
        assert events(folder, "stop")[-1]["reason"] == number.name
        run(folder, toy_config())
        assert (folder.path / "metrics.csv").read_bytes() == (whole.path / "metrics.csv").read_bytes()
        assert same(final(folder), final(whole))

    def test_a_second_hangup_is_the_first_one_again(self, tmp_path):
        folder = RunFolder.create(tmp_path / "run", toy_config().to_plain())
        with pytest.raises(Interrupted, match="stopped by SIGHUP after 48 frames"):
            run(folder, toy_config(), parts=self.interrupt(toy_parts(toy_config()), signal.SIGHUP, times=2))
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 48

    def test_a_run_under_nohup_ignores_hangups(self, tmp_path):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            parts = self.interrupt(toy_parts(toy_config()), signal.SIGHUP)
            folder = run(tmp_path / "run", toy_config(), parts=parts)
        finally:
            signal.signal(signal.SIGHUP, before)
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 96

    def test_a_closed_terminal_saves(self, tmp_path):
        """A process whose terminal goes away, which sends it SIGHUP."""
        settings = dict(flag.removeprefix("--").split("=") for flag in FLAGS)
        settings |= {"training.total_frames": "1e6"}
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        words = ("train", "graphwalk-ppo", *arguments, "--out", tmp_path / "run")
        terminal, other_end = pty.openpty()
        training = processes.start(
            processes.edgewise, *words, place=tmp_path / "training", terminal=os.ttyname(other_end)
        )
        metrics = tmp_path / "run" / "metrics.csv"
        until = time.monotonic() + 120
        while not (metrics.exists() and len(metrics.read_bytes().splitlines()) > 2):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.close(other_end)
        os.close(terminal)
        assert training.wait() == 130
        folder = RunFolder(tmp_path / "run")
        frames = events(folder, "stop")[-1]["frames"]
        assert events(folder, "stop")[-1]["reason"] == "SIGHUP"
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == frames > 0

    def test_a_second_signal_stops_at_once(self, tmp_path):
        folder = RunFolder.create(tmp_path / "run", toy_config().to_plain())
        with pytest.raises(KeyboardInterrupt):
            run(folder, toy_config(), parts=self.interrupt(toy_parts(toy_config()), signal.SIGINT, times=2))
        assert checkpoint.step_of(checkpoint.latest(folder.checkpoints)) == 0
        run(folder, toy_config())


def test_a_curriculum_reaches_the_worlds_but_never_the_instances(tmp_path):
    stages = [
        {"name": "small", "env": {"scale": 0.01}, "until": {"metric": "episode/return", "at_least": 0.01}},
        {"name": "large", "env": {"scale": 100.0}},
    ]
    folder = run(tmp_path / "run", toy_config(training={"curriculum": stages}))
    assert [event["name"] for event in events(folder, "stage")] == ["small", "large"]
    changed = events(folder, "stage")[1]["frames"]
    for row in rows(folder)[1:]:
        assert row["stage"] == ("small" if int(row["frames"]) <= changed else "large")
    trained = [float(row["episode/return"]) for row in rows(folder) if row["episode/return"]]
    measured = [float(row["evaluation/return"]) for row in rows(folder) if row["evaluation/return"]]
    assert trained[0] < 0.05
    assert trained[-1] > 50
    assert all(0.05 < value < 5 for value in measured)


def test_rows_can_be_fewer(tmp_path):
    folder = run(tmp_path / "run", toy_config(logging={"every": 4}))
    assert [row["frames"] for row in rows(folder)] == ["0", "48", "64", "80", "96"]


def test_what_cannot_be_scheduled_is_said(tmp_path):
    config = toy_config()
    config = config.model_copy(
        update={
            "training": config.training.model_validate(
                {
                    "total_frames": 96,
                    "num_envs": 4,
                    "rollout_length": 4,
                    "schedules": {"size": {"kind": "constant", "value": 1.0}},
                }
            )
        }
    )
    with pytest.raises(ConfigError, match=r"training\.schedules\.size"):
        run(tmp_path / "run", config)


def test_tensorboard_events_are_read_back(tmp_path):
    folder = run(tmp_path / "run", toy_config(logging={"tensorboard": True}))
    from tensorboardX.proto.event_pb2 import Event

    content = next((folder.path / "tensorboard").iterdir()).read_bytes()
    found, offset = {}, 0
    while offset < len(content):
        length = int.from_bytes(content[offset : offset + 8], "little")
        event = Event.FromString(content[offset + 12 : offset + 12 + length])
        offset += 16 + length
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    expected = [float(row["learn/loss"]) for row in rows(folder)[1:]]
    assert [step for step, _ in found["learn/loss"]] == [16, 32, 48, 64, 80, 96]
    assert [value for _, value in found["learn/loss"]] == pytest.approx(expected, rel=1e-6)


def test_an_evaluation_that_draws_random_numbers_changes_nothing(tmp_path):
    plain = run(tmp_path / "plain", toy_config())
    parts = toy_parts(toy_config())
    play = parts.evaluate

    def drawing(policy, *, record=0):
        torch.rand(7), random.random(), np.random.rand()
        return play(policy, record=record)

    noisy = run(tmp_path / "noisy", toy_config(), parts=dataclasses.replace(parts, evaluate=drawing))
    assert same(final(plain), final(noisy))


def test_minutes_save_too(tmp_path):
    config = toy_config(checkpoint={"every": None, "minutes": 1e-9, "keep_last": 99})
    folder = run(tmp_path / "run", config)
    assert [checkpoint.step_of(path) for path in checkpoint.saved(folder.checkpoints)] == list(
        range(0, 97, 16)
    )


def test_a_disk_that_is_full_of_rows_is_said(tmp_path, monkeypatch):
    folder = RunFolder.create(tmp_path / "run", toy_config().to_plain())
    append, count = MetricsLog.append, [0]

    def full(self, row):
        count[0] += 1
        if count[0] == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, row)

    monkeypatch.setattr(MetricsLog, "append", full)
    with pytest.raises(
        CheckpointError, match=r"No space left on device; the last good checkpoint is .*step-0+$"
    ):
        run(folder, toy_config())
    monkeypatch.undo()
    whole = run(tmp_path / "whole", toy_config())
    run(folder, toy_config())
    assert same(final(folder), final(whole))


def test_a_run_that_stopped_in_a_stage_needs_a_curriculum(tmp_path):
    """A new curriculum begins with its first stage; none at all is refused."""
    stages = {"curriculum": [{"name": "a", "until": {"frames": 16}}, {"name": "b"}]}
    folder = run(tmp_path / "run", toy_config(training=stages))
    with pytest.raises(CheckpointError, match="there is no stage b"):
        run(folder, toy_config(total_frames=200))
    run(folder, toy_config(total_frames=200, training={"curriculum": [{"name": "c"}]}))
    with (folder.path / "metrics.csv").open() as file:
        assert list(csv.DictReader(file))[-1]["stage"] == "c"
