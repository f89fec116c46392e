"""`edgewise queueing oracle`: exact figures for people and programs, mistakes named."""

import pytest


def test_an_optimum_is_printed_with_its_truncation_bias(edgewise):
    outcome = edgewise("queueing", "oracle", "--graph", "clique2", "--rate", "0.4", "--cap", 30, "--json")
    (figure,) = outcome.data
    assert figure["policy"] == "optimal"
    assert figure["backlog"] == pytest.approx(1.6, abs=2e-3)
    assert 0 <= figure["truncation_bias"] < 0.01
    text = edgewise("queueing", "oracle", "--graph", "clique2", "--rate", "0.4", "--policy", "maxweight").out
    assert "truncation bias" in text
    assert "maxweight" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--graph", "line3", "--rate", "much"), "--rate"),
        (("--graph", "line3", "--rate", "0.6"), "carries less than 0.5"),
    ],
)
def test_mistakes_are_named(edgewise, arguments, complaint):
    outcome = edgewise("queueing", "oracle", *arguments)
    assert outcome.code == 2
    assert complaint in outcome.err
