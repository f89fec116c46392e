"""A self-play run that was stopped goes on bit for bit, pool and all, and its arena rates it."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgewise.cli.main import main
from edgewise.experiments.launch import resume, start
from edgewise.experiments.load import load_config
from edgewise.runs.checkpoint import store as checkpoint

ROOT = Path(__file__).parents[2]
SMALL = {
    "training.total_frames": 32 * 6,
    "training.num_envs": 8,
    "training.rollout_length": 4,
    "training.curriculum": [],
    "env.size": [3, 4],
    "model.encoder.hidden": 8,
    "model.encoder.layers": 1,
    "algorithm.epochs": 1,
    "algorithm.pool_share": 0.5,
    "algorithm.pool_size": 3,
    "algorithm.snapshot_every": 1,
    "algorithm.matchmaking": "hard",
    "evaluation.every": None,
    "evaluation.episodes": 4,
    "evaluation.settings": {"size": 4},
    "evaluation.baselines": ["random"],
    "checkpoint.every": 32,
    "logging.tensorboard": False,
}


def pool_of(run):
    state = checkpoint.load(checkpoint.latest(run / "checkpoints"))
    return state["rollout"]["pool"], state["algorithm"]["actor_critic"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of six batches."""
    config = load_config("hex-selfplay", keywords=SMALL)
    return start(config, folder=tmp_path_factory.mktemp("runs") / "whole")


def test_a_resumed_run_ends_like_one_left_alone(whole, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(whole, part)
    for path in checkpoint.saved(part / "checkpoints"):
        if checkpoint.step_of(path) > 32 * 3:
            shutil.rmtree(path)
    resume(part)
    pool, weights = pool_of(whole)
    again, resumed = pool_of(part)
    assert all(weights[name].equal(resumed[name]) for name in weights)
    assert sorted(pool["taken"].tolist()) == [3, 4, 5]
    assert all(pool[name].equal(again[name]) for name in ("taken", "points", "games", "ratings"))
    assert all(pool["weights"][name].equal(again["weights"][name]) for name in pool["weights"])


def test_ratings_of_snapshots_are_logged_as_they_are_in_the_checkpoint(whole):
    pool, _ = pool_of(whole)
    with (whole / "metrics.csv").open(newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["rollout/rating"]) == pytest.approx(float(pool["ratings"][pool["taken"].argmax()]))
    assert float(last["rollout/snapshots"]) == 3


def test_the_arena_shows_tables_and_data(whole, capsys, monkeypatch):
    monkeypatch.setattr("edgewise.systems.hex.exact.EXACT_SIZES", (3,))
    options = [
        str(whole),
        "--games",
        "8",
        "--opponents",
        "shortest_way",
        "--size",
        "3",
        "--opening-plies",
        "1",
        "--search",
        "2",
    ]
    assert main(["arena", *options]) == 0
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("score in %", "Nash weight", "exploitability in %"))
    assert main(["arena", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["players"] == ["random", "shortest_way", "whole", "whole+2"]
    assert sum(found["nash"].values()) == pytest.approx(1)
    assert 0 <= found["exploitability"]["whole"]["3x3"] <= 1
    assert found["games"] == 8
    assert found["ratings"][0] == {"name": "random", "rating": 0.0, "low": None, "high": None, "n": 12}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--games", "7"], "even"),
        (["--opponents", "wizard"], "monte_carlo"),
        (["--size", "3,4"], "one combination of settings"),
    ],
)
def test_what_cannot_be_played_is_said(whole, capsys, options, complaint):
    assert main(["arena", str(whole), *options]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.thorough
def test_kills_at_any_moment_leave_no_trace_in_pool_ratings_and_gate():
    """In a process of its own, which forks only before it has computed anything."""
    command = [sys.executable, "-m", "benchmarks.kill_resume", "--recipe", "hex-selfplay"]
    command += ["--kills", "5", "--runs", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kills"] == 5
    assert result["differences"] == []
