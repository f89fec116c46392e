"""Exact figures by name: known optima, baselines that lose to them, and what cannot be solved."""

import pytest

from edgewise.config.errors import ConfigError
from edgewise.systems.queueing.oracle.figures import exact_figures


def test_optimum_and_rules_on_a_line_of_three():
    figures = {each.policy: each for each in exact_figures("line3", [0.3], policies=["maxweight"], cap=20)}
    assert figures["optimal"].backlog == pytest.approx(1.2708, abs=2e-4)
    assert figures["optimal"].truncation_bias < 1e-4
    assert figures["maxweight"].backlog == pytest.approx(1.351, rel=0.01)
    assert figures["optimal"].full is not None
    assert figures["optimal"].rate == (0.3, 0.3, 0.3)


def test_every_work_conserving_rule_has_the_mean_of_a_clique():
    """A clique is one queue of all its arrivals: (Var x + Λ(1-Λ)) / (2(1-Λ))."""
    closed = (0.8 * 0.6 + 0.8 * 0.2) / (2 * 0.2)
    for figure in exact_figures("clique2", [0.4], policies=["maxweight", "local-greedy"]):
        assert figure.backlog == pytest.approx(closed, abs=2e-3), figure.policy


def test_a_packet_that_may_leave_at_once_waits_less():
    """At a server of its own it never waits; of two rivals, the active one's arrivals leave a slot sooner."""
    assert exact_figures("clique1", [0.4], arrivals_servable=True)[0].backlog == pytest.approx(0, abs=1e-4)
    late, early = (exact_figures("clique2", [0.3], arrivals_servable=order)[0] for order in (False, True))
    assert early.backlog == pytest.approx(late.backlog - 0.3, abs=1e-4)


def test_unequal_rates_and_a_short_cap_are_reported():
    figure = exact_figures("clique2", [0.6, 0.2], cap=4)[0]
    assert figure.rate == (0.6, 0.2)
    assert figure.cap == 4
    assert figure.truncation_bias > 0.01
    assert figure.full > 0.001


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"graph": "lime3", "rate": [0.4]}, "is not a graph name"),
        ({"graph": "line3", "rate": [0.4, 0.4]}, "2 rates for line3, which has 3"),
        ({"graph": "line3", "rate": [1.4]}, "from 0 to below 1"),
        ({"graph": "ring5", "rate": [0.45]}, "carries less than 0.4 at every node"),
        ({"graph": "line3", "rate": [0.9, 0.6, 0.1]}, "carries less than 0.6667 times these rates"),
        ({"graph": "line12", "rate": [0.3]}, "in each of 12 queues"),
        ({"graph": "line12", "rate": [0.3], "cap": 9}, "states"),
        ({"graph": "line3", "rate": [0.4], "cap": 1}, "states"),
        ({"graph": "line3", "rate": [0.4], "policies": ["random-maximal"]}, "cannot be solved exactly"),
    ],
)
def test_what_cannot_be_solved_is_refused(given, complaint):
    with pytest.raises(ConfigError, match=complaint):
        exact_figures(**given)
