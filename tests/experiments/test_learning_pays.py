"""Where learning pays: verdicts by intervals, rows against what `eval` finds, and the page."""

import json
import shutil

import numpy as np
import pytest

from edgewise.cli.main import main
from edgewise.evaluation.request import EvaluationRequest
from edgewise.evaluation.statistics import Interval
from edgewise.experiments import learning_pays
from edgewise.experiments.evaluate import evaluate_run
from edgewise.experiments.learning_pays import EQUAL, LOSES, PAYS, References, compare_with_rules
from edgewise.experiments.learning_pays_page import html, markdown
from edgewise.runs.zoo import run_path

WALK, QUEUES, HEX = (run_path(f"zoo:{name}") for name in ("graphwalk-ppo", "queueing-line3-ppo", "hex-quick"))


@pytest.fixture(scope="module")
def walk():
    return compare_with_rules(WALK, EvaluationRequest(episodes=30, seed=5))


def test_a_row_is_what_eval_finds(walk):
    own, rule = evaluate_run(WALK, EvaluationRequest(episodes=30, seed=5, baselines=("shortest_path",)))
    assert walk.policy.estimate == pytest.approx(own.returns.mean())
    assert walk.rule_value.estimate == walk.optimum.estimate == pytest.approx(rule.returns.mean())
    assert walk.gain.estimate == pytest.approx((own.returns - rule.returns).mean())
    assert walk.without_edges.estimate < walk.policy.estimate
    assert walk.uses_edges == PAYS
    assert walk.untrained.estimate < walk.policy.estimate
    assert walk.minutes > 0


def test_less_is_better_where_a_measure_is_minimised(monkeypatch):
    row = compare_with_rules(QUEUES, EvaluationRequest(episodes=8, seed=5))
    assert not row.maximise
    assert row.rule == "max-departures"
    assert row.gain.estimate == pytest.approx(row.rule_value.estimate - row.policy.estimate)
    assert row.optimum.estimate == row.rule_value.estimate
    monkeypatch.setattr(learning_pays, "references_of", lambda *_: References(("maxweight",)))
    assert compare_with_rules(QUEUES, EvaluationRequest(episodes=8, seed=5)).gain.estimate > 0.1


def test_the_strongest_rule_is_chosen_by_its_value(monkeypatch):
    monkeypatch.setattr(learning_pays, "references_of", lambda *_: References(("random", "shortest_path")))
    row = compare_with_rules(WALK, EvaluationRequest(episodes=10, seed=5))
    assert row.rule == "shortest_path"
    monkeypatch.setattr(learning_pays, "references_of", lambda *_: References(("random",)))
    assert compare_with_rules(WALK, EvaluationRequest(episodes=10, seed=5)).verdict == PAYS


def test_games_are_compared_by_matches_with_the_hardest_rule():
    row = compare_with_rules(HEX, EvaluationRequest(episodes=20, seed=5))
    assert row.rule in ("most_current", "least_resistance")
    assert row.gain.estimate == pytest.approx(row.policy.estimate - 0.5)
    assert row.untrained.estimate < row.policy.estimate
    assert row.policy.samples == 10


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, PAYS), (-0.1, 0.3, EQUAL), (-0.3, -0.1, LOSES), (np.nan, np.nan, EQUAL), (0.0, 0.2, EQUAL)],
)
def test_verdicts_need_the_whole_interval(low, high, verdict):
    assert learning_pays._verdict(Interval(0.1, low, high, 10)) == verdict


def test_rows_that_do_not_pay_are_in_plain_sight(walk):
    from dataclasses import replace

    loses = replace(walk, run="worse", gain=Interval(-1.0, -2.0, -0.5, 30))
    text = markdown([replace(walk, run="better", gain=Interval(1.0, 0.5, 2.0, 30)), loses])
    assert text.splitlines()[2].startswith("| worse |"), "they come first"
    assert "**does not pay**" in text
    page = html([loses])
    assert "does not pay" in page
    assert '"state":"bad"' in page


def test_one_command_writes_the_page_from_run_folders(tmp_path, capsys):
    folder = tmp_path / "walk"
    shutil.copytree(WALK, folder)
    target = tmp_path / "pays.md"
    words = ["report", str(folder), "--pays", "--episodes", "6", "--out", str(target), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"][0]["run"] == "walk"
    assert found["rows"][0]["policy"]["n"] == 6
    assert target.read_text().startswith("| run | problem |")
    assert main(["report", str(folder), "--episodes", "6"]) == 2
    assert "--episodes: has no effect without --pays" in capsys.readouterr().err
