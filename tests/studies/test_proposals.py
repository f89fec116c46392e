"""Decisions of a sweep are functions of its trials: what is proposed, stopped early and called important."""

import math
import random

import pytest

from edgewise.config.errors import ConfigError
from edgewise.studies import proposals
from edgewise.studies.space import Choice, Range
from edgewise.studies.trials import Trial

pytest.importorskip("optuna")
SPACE = {"rate": Range("log", 1e-5, 1e-1), "size": Range("int", 1, 9), "kind": Choice(("a", "b", "c"))}


def trials(count, value, **fields):
    """Random trials with a value of their settings."""
    drawn = random.Random(0)
    made = []
    for number in range(count):
        params = {
            "rate": 10 ** drawn.uniform(-5, -1),
            "size": drawn.randint(1, 9),
            "kind": drawn.choice(("a", "b", "c")),
        }
        made.append(Trial(number, params, "complete", value(params), **fields))
    return made


def distance(params):
    """How far the rate is from 1e-3, on a logarithmic scale."""
    return abs(math.log10(params["rate"]) + 3)


def test_a_proposal_depends_on_trials_and_seed_alone():
    known = trials(12, distance)
    once = proposals.propose(SPACE, known, maximise=False, seed=3)
    assert once == proposals.propose(SPACE, known, maximise=False, seed=3)
    assert once != proposals.propose(SPACE, known, maximise=False, seed=4)
    assert once != proposals.propose(SPACE, known[:11], maximise=False, seed=3)
    first, second = (proposals.propose(SPACE, known[:count], maximise=False, seed=3) for count in (0, 1))
    assert first != second  # also while proposals are random


@pytest.mark.parametrize("maximise", [True, False])
def test_proposals_go_where_the_values_are_good(maximise):
    sign = -1 if maximise else 1
    known = trials(40, lambda params: sign * distance(params))
    found = [proposals.propose(SPACE, known, maximise=maximise, seed=seed) for seed in range(15)]
    near = sum(distance(params) < 0.7 for params in found)
    assert near >= 10  # a third of the range; five are expected by chance
    assert all(1e-5 <= params["rate"] <= 1e-1 and 1 <= params["size"] <= 9 for params in found)
    assert all(isinstance(params["size"], int) and params["kind"] in "abc" for params in found)


@pytest.mark.parametrize(
    ("maximise", "last", "expected"),
    [(True, 0.4, True), (True, 0.6, False), (False, 0.6, True), (False, 0.4, False)],
)
def test_a_trial_below_the_median_is_stopped(maximise, last, expected):
    """Medians of the five complete trials are 0.5 at every evaluation."""
    known = [
        Trial(
            number,
            {"rate": 1e-3, "size": 1, "kind": "a"},
            "complete",
            value,
            evaluations=dict.fromkeys(range(4), value),
        )
        for number, value in enumerate((0.1, 0.3, 0.5, 0.7, 0.9))
    ]
    running = Trial(5, {"rate": 1e-3, "size": 2, "kind": "b"}, evaluations={0: last, 1: last, 2: last})
    assert proposals.should_prune(SPACE, [*known, running], 5, maximise=maximise) is expected
    early = Trial(5, running.params, evaluations={0: last})
    assert not proposals.should_prune(SPACE, [*known, early], 5, maximise=maximise)
    assert not proposals.should_prune(
        SPACE, [*known[:4], Trial(4, running.params, evaluations=running.evaluations)], 4, maximise=maximise
    )


def test_the_one_setting_that_matters_has_nearly_all_importance():
    shares = proposals.importances(SPACE, trials(40, distance), maximise=False)
    assert shares["rate"] > 0.9
    assert sum(shares.values()) == pytest.approx(1)
    shares = proposals.importances(SPACE, trials(40, lambda params: params["kind"] == "b"), maximise=True)
    assert max(shares, key=shares.__getitem__) == "kind"
    assert proposals.importances(SPACE, trials(3, distance), maximise=False) == {}
    assert proposals.importances(SPACE, trials(9, lambda params: 1.0), maximise=False) == {}


def test_the_best_is_complete_and_first_of_equals():
    made = [
        Trial(0, {}, "pruned", 9.0),
        Trial(1, {}, "complete", 1.0),
        Trial(2, {}, "complete", 1.0),
        Trial(3, {}, "failed"),
    ]
    assert proposals.best_trial(made, maximise=True).number == 1
    assert proposals.best_trial([*made, Trial(4, {}, "complete", 0.5)], maximise=False).number == 4
    assert proposals.best_trial(made[:1], maximise=True) is None


def test_without_optuna_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigError, match="not installed") as error:
        proposals.check_optuna()
    assert error.value.hint == "pip install 'edgewise[sweep]'"
