"""What may be typed after `--set`, and what is refused with which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.config.errors import ConfigError
from edgewise.experiments.load import load_config
from edgewise.studies.space import Choice, Range, as_flags, describe, parse_dimension, parse_space
from edgewise.studies.sweep import check_space

SCHEMA = type(load_config("graphwalk-ppo"))


def test_forms():
    space = parse_space(
        SCHEMA,
        [
            *("learning_rate=log:1e-4,1e-2", "algorithm.epochs=int:1,8", "model.encoder.hidden=logint:8,64"),
            *("gamma=float:0.9,0.99", "num_nodes=choice:[4,8],[8,16]"),
        ],
    )
    assert space == {
        "algorithm.learning_rate": Range("log", 1e-4, 1e-2),
        "algorithm.epochs": Range("int", 1, 8),
        "model.encoder.hidden": Range("logint", 8, 64),
        "algorithm.gamma": Range("float", 0.9, 0.99),
        "env.num_nodes": Choice(("[4,8]", "[8,16]")),
    }
    assert {name: parse_dimension(text) for name, text in describe(space).items()} == space


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("log:0,1", "LOW above 0"),
        ("float:1,1", "LOW below HIGH"),
        ("float:0,inf", "finite"),
        ("int:0.5,2", "whole"),
        ("float:1", "two numbers"),
        ("float:a,b", "two numbers"),
        ("choice:a", "two or more"),
        ("choice:a,a", "different"),
        ("1e-3", "expected log:LOW,HIGH"),
        ("", "expected log:LOW,HIGH"),
    ],
)
def test_what_is_no_form_is_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        parse_space(SCHEMA, [f"learning_rate={text}"])


def test_all_problems_are_named_at_once():
    with pytest.raises(ConfigError) as error:
        parse_space(
            SCHEMA, ["learnin_rate=log:1e-4,1e-2", "gamma", "epochs=int:1,2", "algorithm.epochs=int:1,2"]
        )
    assert "did you mean learning_rate?" in error.value.message
    assert "--set gamma: expected NAME=" in error.value.message
    assert "--set algorithm.epochs: is given twice" in error.value.message
    with pytest.raises(ConfigError, match="needs a setting to vary"):
        parse_space(SCHEMA, [])


def test_every_end_and_choice_must_be_accepted_by_the_config():
    def load(flags):
        return load_config("graphwalk-ppo", flags=flags)

    check_space(parse_space(SCHEMA, ["gamma=float:0.5,1", "model.encoder.kind=choice:transformer,gnn"]), load)
    with pytest.raises(ConfigError) as error:
        check_space(parse_space(SCHEMA, ["gamma=float:0.5,1.5", "epochs=int:0,2"]), load)
    assert "got 1.5" in error.value.message
    assert "got 0" in error.value.message


@given(st.floats(1e-12, 1e12))
def test_numbers_reach_the_config_without_loss(value):
    (_, text), *_ = as_flags({"algorithm.learning_rate": value})
    assert float(text) == value
