"""Nested state ⇄ skeleton and tensors: nothing lost, nothing guessed."""

import json

import pytest
import torch
from hypothesis import given
from tests.runs.states import same, states

from edgewise.runs.checkpoint.serialise import difference, flatten, unflatten


@given(states())
def test_round_trip_through_json(state):
    skeleton, tensors = flatten(state)
    assert same(unflatten(json.loads(json.dumps(skeleton, allow_nan=False)), tensors), state)


def test_tensor_names_read_like_paths():
    state = {"actor": {"encoder.0.weight": torch.ones(2)}, "moments": {0: {"a/b~c": torch.zeros(1)}}}
    assert list(flatten(state)[1]) == ["actor/encoder.0.weight", "moments/0/a~1b~0c"]


def test_paths_that_look_alike_stay_apart():
    state = {"a": {"b": torch.ones(1)}, "a/b": torch.zeros(1)}
    assert same(unflatten(*flatten(state)), state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"policy": {"function": print}}, "policy/function is a builtin"),
        ({"set": {1, 2}}, "set is a set"),
        ({"raw": b"x"}, "raw is a bytes"),
        ({"keys": {(1, 2): 3}}, "keys has the key (1, 2)"),
        ({"keys": {True: 3}}, "keys has the key True"),
        ({1: torch.ones(1), "1": torch.ones(1)}, "called 1"),
    ],
)
def test_what_cannot_be_kept_is_named(state, words):
    with pytest.raises(TypeError) as error:
        flatten(state)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "skeleton",
    [
        {"tensor": "x", "map": {}},
        {"tensor": "absent"},
        {"tensor": 3},
        {"tensor": ["x"]},
        {"code": "import os"},
        {},
        {"map": []},
        {"tuple": {}},
        {"items": [[1]]},
        {"items": [[[1], 2]]},
        {"items": 3},
        {"float": "1.5"},
        {"float": "not sixteen hex."},
        {"float": []},
        [{"tensor": "x"}, {"tensor": "x"}],
    ],
)
def test_a_skeleton_that_is_none_is_refused(skeleton):
    with pytest.raises(ValueError):
        unflatten(skeleton, {"x": torch.ones(1)})


def test_a_tensor_nobody_asked_for_is_refused():
    with pytest.raises(ValueError, match="extra belongs to no part"):
        unflatten({"map": {}}, {"extra": torch.ones(1)})


def test_difference_names_the_first_misfit():
    here = {"weight": torch.zeros(2, 3), "moments": {}, "carried": None}
    assert (
        difference({"weight": torch.ones(2, 3), "moments": {0: torch.ones(1)}, "carried": {"a": 1}}, here)
        is None
    )
    assert difference({**here, "weight": torch.ones(3, 2)}, here) == (
        "weight is float32 [3, 2], this run has float32 [2, 3]"
    )
    assert "float64" in (difference({**here, "weight": torch.ones(2, 3).double()}, here) or "")
    assert difference({**here, "bias": torch.ones(1)}, here) == "bias: this run has no such entry"
    assert difference({"moments": {}, "carried": None}, here) == "weight: the checkpoint has no such entry"
    assert difference([1, 2], [1, 2, 3]) is not None
    assert difference({"weight": 3}, {"weight": torch.ones(1)}) is not None
    assert difference({"a": [1]}, {"a": {"b": 1}}) is not None


def test_a_stage_may_have_a_number_where_the_config_has_a_range():
    found, expected = ({"env": {"stage": {"size": size}, "x": torch.ones(2)}} for size in (2, [2, 3]))
    assert difference(found, expected) is None
    found["env"]["x"] = torch.ones(3)
    assert difference(found, expected) is not None
