"""What the page tells: who is compared with whom, stages, status, health, and bands over seeds."""

import dataclasses
import json

import numpy as np
import pytest
from tests.report.synthetic import make_run

from edgewise.evaluation.result import Evaluation
from edgewise.evaluation.statistics import mean_interval
from edgewise.report import comparison, curves, health, timeline
from edgewise.report.comparison import Entrant, compare, entrants, instance_set, main_set
from edgewise.report.metrics_table import Curve, MetricsTable
from edgewise.report.page_data import build_page_data
from edgewise.report.run_data import read_run


def evaluation(returns, **changes):
    values = np.asarray(returns, dtype=float)
    plain = Evaluation(env="walk", seed=5, returns=values, lengths=values, finished=values > -1e9)
    return dataclasses.replace(plain, **changes)


def curve(x, y):
    return Curve(np.asarray(x, float), np.asarray(y, float), np.asarray(y, float), np.asarray(y, float))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return build_page_data([read_run(make_run(tmp_path_factory.mktemp("runs") / "walk-0", rows=50))])


def test_the_story_is_json_without_nan(told):
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_the_main_measure_comes_first_with_baselines_as_levels(told):
    first = told["evaluation"][0]
    assert first["name"] == "return"
    assert {level["label"] for level in first["levels"]} == {"random", "shortest_path"}
    assert first["lines"][0]["x"] == [20_000.0 * step for step in range(11)]
    assert first["behind"]["x"][-1] == 200_000
    assert all(
        low <= y <= high
        for low, y, high in zip(*(first["lines"][0][k] for k in ("low", "y", "high")), strict=True)
    )


def test_evaluation_columns_are_not_drawn_twice(told):
    assert "evaluation" not in {chart["family"] for chart in told["training"]}
    healthy = {f"{chart['family']}/{chart['name']}" for chart in told["health"]["charts"]}
    assert "learn/kl" in healthy
    assert "health/encoder.layers.0/attention_entropy" in healthy
    assert "learn/policy_loss" in {f"{chart['family']}/{chart['name']}" for chart in told["training"]}


def test_stages_follow_the_rows(told):
    assert [stage["name"] for stage in told["stages"]] == ["small", "large"]
    assert told["stages"][0]["start"] == 0
    assert told["stages"][0]["end"] == told["stages"][1]["start"] == 76_000
    assert told["stages"][1]["end"] == 200_000


def test_facts_of_the_run(told):
    facts = told["runs"][0]
    assert facts["status"] == {"state": "good", "text": "finished"}
    assert facts["seconds"] == pytest.approx(95.75)
    assert facts["resumes"] == 1


@pytest.mark.parametrize(
    "events, state, words",
    [
        ([{"event": "stop", "reason": "SIGINT"}], "warn", "stopped by SIGINT"),
        ([{"event": "stop", "reason": "not finite in the batch"}], "bad", "not finite"),
        ([{"event": "checkpoint"}], "", "not finished"),
    ],
)
def test_status_is_how_the_last_event_leaves_it(tmp_path, events, state, words):
    run = read_run(make_run(tmp_path / "run", rows=3, evaluations=1))
    status = timeline.facts(dataclasses.replace(run, events=events))["status"]
    assert status["state"] == state
    assert words in status["text"]


def test_health_sees_what_is_wrong():
    sound = {"learn/ratio_start": np.ones(4), "learn/gradient_norm": np.array([1, 2, 1.5, 1.0])}
    sound["health/encoder/layer_0/logit_max"] = np.array([1.0, 2, 3, 4])
    states = {check.label: check.state for check in health.checks(MetricsTable(sound, rows=4), [])}
    assert set(states.values()) == {"good"}
    assert len(states) == 4
    faults = {
        "learn/ratio_start": np.array([1, 1, 1.2, 1]),
        "learn/gradient_norm": np.array([1, 1, 1, 1e4]),
        "health/encoder/layer_1/logit_max": np.array([80.0]),
        "learn/loss": np.array([np.inf]),
    }
    for name, values in faults.items():
        wrong = () if np.isfinite(values).all() else (name,)
        found = health.checks(MetricsTable({**sound, name: values}, rows=4, not_finite=wrong), [])
        assert [check.state for check in found].count("good") == 3, name
    stopped = [{"event": "stop", "reason": "not finite in the batch after 0 frames: next.reward"}]
    assert health.checks(MetricsTable(sound, rows=4), stopped)[0].state == "bad"


def test_equal_instances_are_what_most_evaluations_share():
    usual = [evaluation([1, 2]), evaluation([2, 3]), evaluation([0, 0], baseline=True)]
    large = evaluation([5, 6], settings={"num_nodes": 50})
    assert main_set([*usual, large]) == instance_set(usual[0])
    assert instance_set(large) != instance_set(usual[0])
    assert main_set([]) is None


def test_entrants_are_the_newest_policy_and_each_baseline_once():
    old, new = evaluation([0, 1], frames=10), evaluation([1, 2], frames=20)
    plain = evaluation([5, 5], policy="greedy", baseline=True)
    found = entrants({"ppo": [[old, new, plain], [old, plain]]}, instance_set(old))
    assert [(one.label, one.baseline, len(one.evaluations)) for one in found] == [
        ("this policy", False, 2),
        ("greedy", True, 1),
    ]
    assert found[0].evaluations[0] is new


def test_single_evaluations_are_compared_pair_by_pair():
    instances = np.random.default_rng(0).normal(scale=50, size=40)
    ours, theirs = (
        Entrant(name, False, (evaluation(instances + shift),))
        for name, shift in (("a", 1 + 0.1 * np.sin(np.arange(40))), ("b", 0))
    )
    versus = compare(ours, theirs, "return", maximise=True)
    assert versus.over == "instances"
    assert versus.difference.estimate == pytest.approx(1, abs=0.05)
    assert versus.difference.low > 0.9
    assert versus.difference.samples == 40
    assert versus.better.estimate == 1
    assert 0.85 < versus.better.low < versus.better.high == pytest.approx(1)
    assert compare(ours, theirs, "return", maximise=False).better.estimate == 0
    assert compare(ours, theirs, "absent", maximise=True) is None


def test_pairs_are_of_the_same_instance_where_a_measure_is_undefined_on_some():
    ours = Entrant("a", False, (evaluation([np.nan, 20, 30]),))
    theirs = Entrant("b", False, (evaluation([10, 19, np.nan]),))
    versus = compare(ours, theirs, "return", maximise=True)
    assert versus.difference.estimate == 1
    assert versus.better.estimate == 1
    nobody = Entrant("c", False, (evaluation([7, np.nan, np.nan]),))
    assert compare(ours, nobody, "return", maximise=True) is None


def test_seeds_are_compared_run_by_run():
    ours = Entrant("a", False, tuple(evaluation([mean, mean]) for mean in (1, 2, 3)))
    theirs = Entrant("b", False, tuple(evaluation([mean, mean]) for mean in (0, 2)))
    versus = compare(ours, theirs, "return", maximise=True)
    assert versus.over == "seeds"
    assert versus.better.estimate == pytest.approx((1 + 0 + 1 + 0.5 + 1 + 1) / 6)
    assert versus.difference.estimate == pytest.approx(1)
    assert comparison.seeds_summary(ours, "return") == 2


@pytest.mark.parametrize(
    ("recipes", "over", "each"),
    [
        (["a"], "episodes", "episode"),
        (["a", "b"], "episodes", "episode"),
        (["a", "a"], "seeds", "seed"),
        (["a", "a", "b"], "seeds, or over episodes where there is one seed", "seed"),
    ],
)
def test_intervals_are_over_seeds_only_where_there_are_several(tmp_path, recipes, over, each):
    runs = []
    for number, recipe in enumerate(recipes):
        folder = make_run(tmp_path / str(number), seed=number, rows=3, evaluations=2)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "recipe": recipe}))
        runs.append(read_run(folder))
    page = build_page_data(runs)
    assert page["over"] == over
    assert {tile["over"] for tile in page["headline"]} == {each}


def test_seeds_become_one_line_with_a_band():
    three = curves.mean_curve([curve([0, 10], [start, 10 - start]) for start in (0, 2, 4)])
    np.testing.assert_allclose(three.y, [2, 8])
    found = mean_interval([0.0, 2.0, 4.0])
    assert (three.low[0], three.high[0]) == pytest.approx((found.low, found.high))
    assert three.cut is None
    both = curves.mean_curve([curve([0, 10], [0, 10]), curve([0, 10], [4, 4])])
    np.testing.assert_allclose(both.y, [2, 7])
    assert np.isnan(both.low).all(), "two seeds tell no band"


def test_the_mean_of_seeds_is_cut_where_one_ends():
    """Beyond 10 there is one seed alone, whose 15 is no mean of two."""
    found = curves.mean_curve([curve([0, 10], [0, 10]), curve([5, 20], [0, 15])])
    np.testing.assert_allclose(found.x, [5, 10])
    np.testing.assert_allclose(found.y, [2.5, 7.5])
    assert (found.cut.seeds, found.cut.shortest, found.cut.longest) == (2, 10, 20)
    apart = curves.mean_curve([curve([0, 1], [0, 1]), curve([5, 20], [0, 15])])
    assert len(apart.x) == 0


def test_a_page_of_several_runs_shows_each_and_cuts_their_curves(tmp_path):
    folders = [make_run(tmp_path / f"run-{seed}", seed=seed, rows=20, evaluations=6) for seed in range(3)]
    for name in ("000000160000.json", "000000200000.json"):
        (folders[1] / "evaluations" / name).unlink()
    table = (folders[1] / "metrics.csv").read_text().splitlines()
    cells = table[-1].split(",")
    cells[table[0].split(",").index("learn/value_loss")] = "nan"
    (folders[1] / "metrics.csv").write_text("\n".join([*table[:-1], ",".join(cells), ""]))
    page = build_page_data([read_run(folder) for folder in folders])
    line = page["evaluation"][0]["lines"][0]
    assert line["x"][-1] == 120_000
    assert line["cut"] == {"seeds": 3, "shortest": 120_000, "longest": 200_000}
    states = [
        {check["label"]: check["state"] for check in run["checks"]}["Finite numbers"]
        for run in page["health"]["runs"]
    ]
    assert states == ["good", "bad", "good"]
    assert "learn/value_loss" in page["health"]["runs"][1]["checks"][0]["text"]
    assert [run["name"] for run in page["health"]["runs"]] == ["run-0", "run-1", "run-2"]
    assert all(run["events"] for run in page["health"]["runs"])
    assert [run["config"]["seed"] for run in page["configs"]] == [0, 1, 2]
    assert page["differing"] == [{"setting": "seed", "values": [0, 1, 2]}]


def test_replays_are_spread_over_the_training(tmp_path):
    folder = make_run(tmp_path / "run", rows=3, evaluations=1)
    text = (folder / "replays" / "000000200000-0.json").read_text()
    for frames in range(10_000, 200_000, 10_000):
        (folder / "replays" / f"{frames:012d}-0.json").write_text(text)
    for number in range(1, 5):
        (folder / "replays" / f"000000200000-{number}.json").write_text(text)
    names = [episode.name.lstrip("0") for episode in read_run(folder).replays]
    assert names == ["200000-0", "200000-1", "200000-2", "140000-0", "70000-0", "-0"]


ABLATED = {
    "without": "edges",
    "measure": "return",
    "settings": {"num_nodes": 9},
    "mean": 2.0,
    "other_mean": 0.5,
    "difference": 1.5,
    "difference_low": 1.0,
    "difference_high": 2.0,
    "changed_actions": 0.4,
}


def test_what_the_policy_uses_is_told_from_its_ablations(told, tmp_path):
    assert told["used"] == []
    folder = make_run(tmp_path / "walk-0", rows=5)
    (folder / "ablations.json").write_text(json.dumps({"format": "edgewise-ablations/1", "rows": [ABLATED]}))
    (row,) = build_page_data([read_run(folder)])["used"]
    assert (row["run"], row["without"], row["settings"]) == ("walk-0", "edges", "num_nodes = 9")
    assert (row["mean"], row["ablated"], row["changed"]) == (2.0, 0.5, 0.4)
    assert row["difference"] == {"estimate": 1.5, "low": 1.0, "high": 2.0, "n": None}


@pytest.mark.parametrize("rows", [[{**ABLATED, "mean": "2"}], [{"without": "edges"}], {}, None])
def test_damaged_ablations_cost_their_section_only(rows, tmp_path):
    folder = make_run(tmp_path / "walk-0", rows=5)
    (folder / "ablations.json").write_text(json.dumps({"format": "edgewise-ablations/1", "rows": rows}))
    found = build_page_data([read_run(folder)])
    assert found["used"] == []
    assert any("ablations.json" in note for note in found["notes"])
