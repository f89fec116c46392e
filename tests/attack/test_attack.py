"""A sample of what `make attack` does: none gives a traceback, and no damage is passed over in silence."""

import json
import random

import pytest
from tests.attack.damage import Damage, Runs, every_damage
from tests.attack.inputs import KINDS, attempt
from tests.attack.judge import GOOD, NO_EFFECT, SILENT, Outcome, judge, run_here
from tests.attack.places import try_forged, try_places
from tests.attack.samples import EVALUATION, GRAPHS

from edgewise.config.errors import DataError
from edgewise.evaluation.result import Evaluation
from edgewise.graphs.datasets import read_graphs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("attack"), run=run_here)


SAMPLE = {
    Damage("checkpoints/best.json", "removed"): ("eval",),
    Damage("checkpoints/best.json", "digits"): ("eval",),
    Damage("config.json", "deep"): ("verify", "report", "eval", "resume"),
    Damage("events.jsonl", "zeros"): ("verify", "report"),
    Damage("metrics.csv", "digit"): ("verify", "report", "resume"),
    Damage("metrics.csv", "last line"): ("report",),
    Damage("timing.csv", "bytes"): ("verify", "report"),
    Damage("versions.json", "nan"): ("report", "eval"),
    Damage("digests.jsonl", "half"): ("verify", "report"),
}


@pytest.mark.parametrize("damage", SAMPLE, ids=lambda damage: f"{damage.file}: {damage.name}")
def test_damage_is_refused_or_said_or_without_effect(runs, damage):
    assert damage in every_damage(runs.whole)
    found = list(runs.attack(damage, seed=1, verbs=SAMPLE[damage]))
    assert [(verb, verdict) for verb, verdict, _ in found if verdict not in GOOD] == []


def test_a_changed_evaluation_is_said(runs):
    file = next(damage.file for damage in every_damage(runs.whole) if damage.file.startswith("evaluations/0"))
    verdicts = {
        verb: verdict
        for verb, verdict, _ in runs.attack(Damage(file, "digit"), seed=1, verbs=("verify", "report"))
    }
    assert verdicts == {"verify": "refused", "report": "said"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_inputs_are_accepted_or_refused(tmp_path, kind):
    for number in range(6):
        verdict, text = attempt(kind, tmp_path, f"sample-{random.Random(0).random()}-{number}")
        assert verdict != "TRACEBACK", text


def test_what_is_no_file_is_refused_wherever_a_file_is_read(tmp_path):
    count, bad = try_places(tmp_path)
    assert count > 100
    assert bad == []


def test_forged_configs_of_a_run_are_refused_or_do_no_harm(tmp_path):
    counts, bad = try_forged(tmp_path)
    assert bad == []
    assert counts["refused"] > counts["accepted"] > 0


def test_an_encoding_that_does_not_exist_is_refused(tmp_path):
    (tmp_path / "graph.graphml").write_text(GRAPHS["graph.graphml"].replace("UTF-8", "UTTF-8"))
    with pytest.raises(DataError, match="unknown encoding: UTTF-8"):
        read_graphs(str(tmp_path / "graph.graphml"))


def test_numbers_as_text_are_no_measures(tmp_path):
    (tmp_path / "1.json").write_text(json.dumps({**EVALUATION, "returns": ["Infinity", "1"]}))
    with pytest.raises(DataError, match="'Infinity', which is not a number"):
        Evaluation.load(tmp_path / "1.json")


def test_the_judge_notices():
    assert judge(Outcome(0, "", ""), names=("x",), changed=True) == SILENT
    assert judge(Outcome(0, "", "x is damaged"), names=("x",), changed=True) == "said"
    assert judge(Outcome(0, "", ""), names=("x",), changed=False) == NO_EFFECT
    assert judge(Outcome(3, "", ""), names=("x",), changed=True) == SILENT
    assert judge(Outcome(3, "", "error: x"), names=("x",), changed=True) == "refused"
    assert judge(Outcome(1, "", "Traceback (most"), names=("x",), changed=True) not in GOOD
    assert judge(Outcome(-9, "", ""), names=("x",), changed=True) not in GOOD
