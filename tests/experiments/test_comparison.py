"""Runs compared with baselines and with other runs, pair by pair on the same instances."""

import json

import numpy as np
import pytest

import edgewise as ew
from edgewise.cli.main import main
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.statistics import paired_ratio
from edgewise.experiments.comparison import compare_runs
from edgewise.experiments.evaluate import evaluate_run

SMALL = {
    "total_frames": 64,
    "num_envs": 8,
    "rollout_length": 8,
    "model.encoder.hidden": 8,
    "algorithm.epochs": 1,
    "evaluation.episodes": 8,
    "evaluation.every": 10_000,
    "logging.tensorboard": False,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs on paths of six nodes, and one on cycles of six."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for seed, more in enumerate(({}, {}, {"env.num_nodes": 9})):
        made.append(
            ew.train(
                "graphwalk-ppo", folder=folder / f"run-{seed}", seed=seed, progress=False, **SMALL, **more
            )
        )
    return [run.path for run in made]


def test_pairs_are_the_evaluations_on_the_instances_of_the_first(runs):
    first, second, _ = runs
    pairs = compare_runs([first], [str(second), "shortest_path"], EvaluationRequest(episodes=6, seed=11))
    alone = [evaluate_run(run, EvaluationRequest(episodes=6, seed=11))[0] for run in (first, second)]
    assert [(ours.policy, theirs.policy) for ours, theirs in pairs] == [
        ("run-0", "run-1"),
        ("run-0", "shortest_path"),
    ]
    for found, expected in zip(pairs[0], alone, strict=True):
        np.testing.assert_array_equal(found.returns, expected.returns)


def test_other_instances_are_refused(runs, capsys):
    first, _, other = runs
    assert main(["eval", str(first), "--against", str(other)]) == 2
    assert "num_nodes" in capsys.readouterr().err
    assert main(["eval", str(first), "--against", str(other), "--num-nodes", "7", "--episodes", "4"]) == 0


def test_the_command_shows_difference_and_ratio(runs, capsys):
    first, second, _ = runs
    arguments = ["eval", str(first), str(second), "--against", "shortest_path", "--episodes", "8"]
    assert main([*arguments, "--measures", "success,length", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["pairs"]
    assert [(row["run"], row["measure"]) for row in rows] == [
        (run, measure) for run in ("run-0", "run-1") for measure in ("length", "success")
    ]
    for row in rows:
        assert row["difference"] == pytest.approx(row["mean"] - row["other_mean"])
        assert row["ratio"] == pytest.approx(row["mean"] / row["other_mean"])
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--against", "wind"], "has no baseline wind"),
        (["--against", "random", "--ablate", "edges"], "two comparisons"),
        (["--against", "random", "--decode", "sample:2"], "no effect with --against"),
        (["--against", "random", "--measures", "wind"], "--measures: got wind"),
    ],
)
def test_what_cannot_be_compared_is_refused(flags, message, runs, capsys):
    assert main(["eval", str(runs[0]), *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_ratio_is_that_of_means_over_pairs():
    generator = np.random.default_rng(1)
    other = generator.exponential(size=400)
    values = 0.25 * other + 0.01 * generator.normal(size=400)
    ratio = paired_ratio(values, other)
    assert ratio.estimate == pytest.approx(values.mean() / other.mean())
    assert ratio.high - ratio.low < 0.01  # pairs move together
    assert ratio.low < 0.25 < ratio.high
    apart = paired_ratio(generator.permutation(values), other)
    assert apart.high - apart.low > 5 * (ratio.high - ratio.low)
    assert paired_ratio([1.0, 2.0], [0.0, 0.0]) is None
